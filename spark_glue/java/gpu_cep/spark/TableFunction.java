package gpu_cep.spark;

import java.nio.charset.StandardCharsets;
import org.apache.spark.api.python.PythonEvalType;
import org.apache.spark.api.python.PythonUtils$;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.execution.python.UserDefinedPythonTableFunction;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;

/** Makes calls of the table function gpu_match, which is a class of Python: that which the session has registered, or else our own. */
final class TableFunction extends AbstractFunction1 {
    static final String NAME = "gpu_match";
    /** Spark looks for functions of extensions first; this is the name of one that cep.register has made. */
    private static final FunctionIdentifier REGISTERED = new FunctionIdentifier(NAME, Option.apply("session"), Option.apply("system"));

    /** Returns the plan of a call with some arguments. */
    public Object apply(Object arguments) {
        Option registered = SparkSession$.MODULE$.active().sessionState().tableFunctionRegistry().lookupFunctionBuilder(REGISTERED);
        return registered.isDefined() ? ((Function1) registered.get()).apply(arguments) : ownCall((Seq) arguments);
    }

    /** Returns the plan of a call of our own function. */
    private static Object ownCall(Seq arguments) {
        byte[] command = handler().getBytes(StandardCharsets.US_ASCII);
        return new UserDefinedPythonTableFunction(
            NAME, PythonUtils$.MODULE$.createPythonFunction(command), PythonEvalType.SQL_ARROW_UDTF(), false
        ).builder(arguments, new AbstractFunction0() {
            public Object apply() {
                return CatalystSqlParser$.MODULE$;
            }
        });
    }

    /** Returns a pickle of the call that gives the class: table_function(zone, partitions). */
    private static String handler() {
        SQLConf conf = SQLConf.get();
        String arguments = "V" + conf.sessionLocalTimeZone() + "\nI" + conf.numShufflePartitions() + "\n";
        return "cgpu_cep_spark.sql\ntable_function\n(" + arguments + "tR.";
    }
}
