package gpu_cep.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import scala.Tuple3;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Gives the SQL of Spark sessions MATCH_RECOGNIZE and the table function gpu_match: {@code spark.sql.extensions=gpu_cep.spark.Extension}. */
public final class Extension extends AbstractFunction1 {
    /** Adds both to the extensions of a session. */
    public Object apply(Object given) {
        SparkSessionExtensions extensions = (SparkSessionExtensions) given;
        FunctionIdentifier name = new FunctionIdentifier(TableFunction.NAME);
        ExpressionInfo info = new ExpressionInfo(TableFunction.class.getName(), TableFunction.NAME);
        extensions.injectTableFunction(new Tuple3(name, info, new TableFunction()));
        extensions.injectParser(new AbstractFunction2() {
            public Object apply(Object session, Object parser) {
                return new Parser((ParserInterface) parser);
            }
        });
        return BoxedUnit.UNIT;
    }
}
