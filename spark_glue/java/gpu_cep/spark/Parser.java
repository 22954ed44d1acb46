package gpu_cep.spark;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlStatementSplitResult;
import org.apache.spark.sql.catalyst.parser.TemporalIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** Hands all texts on to another parser: queries with each MATCH_RECOGNIZE as a call of gpu_match, the others as they are. */
final class Parser implements ParserInterface {
    private final ParserInterface parser;

    Parser(ParserInterface parser) {
        this.parser = parser;
    }

    public LogicalPlan parsePlan(String text) throws ParseException {
        return parser.parsePlan(RowPatterns.asCalls(text));
    }

    public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) throws ParseException {
        return parser.parsePlanWithParameters(RowPatterns.asCalls(text), parameters);
    }

    public LogicalPlan parseQuery(String text) throws ParseException {
        return parser.parseQuery(RowPatterns.asCalls(text));
    }

    public Expression parseExpression(String text) throws ParseException {
        return parser.parseExpression(RowPatterns.asCalls(text));
    }

    public TableIdentifier parseTableIdentifier(String text) throws ParseException {
        return parser.parseTableIdentifier(text);
    }

    public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
        return parser.parseFunctionIdentifier(text);
    }

    public Seq parseMultipartIdentifier(String text) throws ParseException {
        return parser.parseMultipartIdentifier(text);
    }

    public TemporalIdentifier parseTemporalTableIdentifier(String text) throws ParseException {
        return parser.parseTemporalTableIdentifier(text);
    }

    public StructType parseRoutineParam(String text) throws ParseException {
        return parser.parseRoutineParam(text);
    }

    public StructType parseTableSchema(String text) throws ParseException {
        return parser.parseTableSchema(text);
    }

    public DataType parseDataType(String text) throws ParseException {
        return parser.parseDataType(text);
    }

    public SqlStatementSplitResult splitStatements(String text) throws ParseException {
        return parser.splitStatements(text);
    }
}
