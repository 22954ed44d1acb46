import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Answers a question in a local cluster: writes the matches, then answers it again for every line of input, into a sink that
 * discards them. Each time it is done it says so.
 *
 * <p>Arguments: EVENTS TYPES QUESTION WINDOW MATCHES MODE PARALLELISM [SQL]; without SQL the pattern API answers. For the question
 * "rules" the last one has the types of each rule, in parts of which each is a job of its own: "0:A B C;D E F|2:G H I".
 */
public final class FlinkRival {
    private FlinkRival() {}

    public static void main(String[] arguments) throws Exception {
        Events.load(Path.of(arguments[0]), arguments[1].split(","));
        writeMatches(arguments);
        System.out.println("done");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            discardMatches(arguments);
            System.out.println("done");
        }
    }

    private static void writeMatches(String[] arguments) throws Exception {
        try (PrintWriter file = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[4])))) {
            for (String[] job : jobs(arguments)) {
                DataStream<?> found = answer(environment(job), job);
                try (CloseableIterator<String> lines = found.map(FlinkRival::line).returns(String.class).executeAndCollect()) {
                    while (lines.hasNext()) {
                        file.println(lines.next());
                    }
                }
            }
        }
    }

    private static void discardMatches(String[] arguments) throws Exception {
        for (String[] job : jobs(arguments)) {
            StreamExecutionEnvironment environment = environment(job);
            answer(environment, job).sinkTo(new DiscardingSink<>());
            environment.execute();
        }
    }

    /** The arguments of each job: the rules of one part each, or the whole question. */
    private static List<String[]> jobs(String[] arguments) {
        if (!arguments[2].equals("rules")) {
            return List.<String[]>of(arguments);
        }
        List<String[]> jobs = new ArrayList<>();
        for (String part : arguments[7].split("\\|")) {
            String[] own = arguments.clone();
            own[7] = part;
            jobs.add(own);
        }
        return jobs;
    }

    private static StreamExecutionEnvironment environment(String[] arguments) {
        Configuration configuration = new Configuration();
        // each rule of a job has the events sent to it
        configuration.setString("taskmanager.memory.network.min", "1g");
        configuration.setString("taskmanager.memory.network.max", "1g");
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(arguments[6]), configuration);
        environment.setRuntimeMode(RuntimeExecutionMode.valueOf(arguments[5]));
        environment.getConfig().enableObjectReuse();
        return environment;
    }

    private static DataStream<?> answer(StreamExecutionEnvironment environment, String[] arguments) {
        DataStream<Event> events = Events.stream(environment);
        if (arguments[2].equals("rules")) {
            return Patterns.rules(events, Long.parseLong(arguments[3]), arguments[7]);
        }
        if (arguments.length < 8) {
            return Patterns.matches(arguments[2], events, Long.parseLong(arguments[3]));
        }
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        Schema schema =
                Schema.newBuilder()
                        .column("ts", DataTypes.BIGINT().notNull())
                        .column("streamKey", DataTypes.INT().notNull())
                        .column("type", DataTypes.STRING().notNull())
                        .column("price", DataTypes.DOUBLE())
                        .columnByMetadata("event_time", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
                        .watermark("event_time", "SOURCE_WATERMARK()")
                        .build();
        tables.createTemporaryView("events", events, schema);
        return tables.toDataStream(tables.sqlQuery(arguments[7]));
    }

    private static String line(Object match) {
        if (match instanceof long[]) {
            return Arrays.stream((long[]) match).mapToObj(Long::toString).collect(Collectors.joining(","));
        }
        Row row = (Row) match;
        StringBuilder line = new StringBuilder();
        for (int place = 0; place < row.getArity(); place++) {
            line.append(place == 0 ? "" : ",").append(row.getField(place));
        }
        return line.toString();
    }
}
