/** One event. Flink's POJO serializer wants public fields and a constructor without arguments. */
public class Event {
    public long ts;
    public int streamKey;
    public String type;
    public double price;

    public Event() {}

    Event(long ts, int streamKey, String type, double price) {
        this.ts = ts;
        this.streamKey = streamKey;
        this.type = type;
        this.price = price;
    }

    boolean is(String wanted) {
        return type.equals(wanted);
    }
}
