import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import org.apache.flink.api.common.eventtime.SerializableTimestampAssigner;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** The events, kept in the JVM that runs the local cluster, so that a job reads nothing from disk. */
final class Events {
    private static Event[] events;

    private Events() {}

    /** Loads rows of (ts int64, price float64, stream key int32, type int32), little-endian; a type is a place in `types`. */
    static void load(Path path, String[] types) throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            ByteBuffer rows = ByteBuffer.allocate(Math.toIntExact(file.size())).order(ByteOrder.LITTLE_ENDIAN);
            while (rows.hasRemaining() && file.read(rows) >= 0) {}
            rows.flip();
            events = new Event[rows.remaining() / 24];
            for (int row = 0; row < events.length; row++) {
                long ts = rows.getLong();
                double price = rows.getDouble();
                int streamKey = rows.getInt();
                events[row] = new Event(ts, streamKey, types[rows.getInt()], price);
            }
        }
    }

    /** The events in time order from one source, with a watermark right behind. */
    static DataStream<Event> stream(StreamExecutionEnvironment environment) {
        SerializableTimestampAssigner<Event> time = (event, before) -> event.ts;
        return environment
                .fromSequence(0, events.length - 1)
                .setParallelism(1)
                .map(row -> events[row.intValue()])
                .returns(Event.class)
                .setParallelism(1)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner(time))
                .setParallelism(1);
    }
}
