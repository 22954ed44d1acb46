import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;

/** The questions in Flink CEP's pattern API. A match is a row of times, and of the number of events that a quantifier took. */
final class Patterns {
    private Patterns() {}

    static DataStream<long[]> matches(String question, DataStream<Event> events, long window) {
        switch (question) {
            case "contiguous":
                return contiguous(events, window);
            case "set":
                return set(events, window);
            case "selective":
                return selective(events, window);
            case "rising":
                return rising(events, window);
            default:
                throw new IllegalArgumentException(question);
        }
    }

    private static DataStream<long[]> contiguous(DataStream<Event> events, long window) {
        Pattern<Event, ?> pattern =
                begin("a", ofType("A"))
                        .next("b").where(ofType("B")).oneOrMore().consecutive()
                        .next("c").where(ofType("C")).where(new Pricier("a"))
                        .within(Duration.ofMillis(window + 1));
        PatternSelectFunction<Event, long[]> times = match -> {
            List<Event> b = match.get("b");
            return new long[] {time(match, "a"), b.get(0).ts, b.size(), time(match, "c")};
        };
        return found(CEP.pattern(events.keyBy(event -> event.streamKey), pattern), times);
    }

    /** AND has no counterpart: from a C, P or D on every relevant event is taken, up to the first B that has all three before it. */
    private static DataStream<long[]> set(DataStream<Event> events, long window) {
        DataStream<Event> relevant = events.filter(event -> event.is("C") || event.is("P") || event.is("D") || event.is("B"));
        Pattern<Event, ?> pattern =
                begin("s", SimpleCondition.of(event -> !event.is("B")))
                        .next("x").where(new Completes(false)).oneOrMore().consecutive()
                        .next("b").where(new Completes(true))
                        .within(Duration.ofMillis(window + 1));
        return found(CEP.pattern(relevant.keyBy(event -> event.streamKey), pattern), Patterns::setTimes);
    }

    private static long[] setTimes(Map<String, List<Event>> match) {
        long[] firsts = new long[3];
        long treatments = 0;
        for (String name : List.of("s", "x")) {
            for (Event event : match.get(name)) {
                int place = "CPD".indexOf(event.type);
                if (place >= 0 && firsts[place] == 0) {
                    firsts[place] = event.ts;
                }
                treatments += event.is("P") ? 1 : 0;
            }
        }
        return new long[] {firsts[0], firsts[1], treatments, firsts[2], time(match, "b")};
    }

    private static DataStream<long[]> selective(DataStream<Event> events, long window) {
        DataStream<Event> relevant = events.filter(event -> event.is("Quote") || event.is("Trade") || event.is("Halt"));
        Pattern<Event, ?> pattern =
                begin("q", ofType("Quote"))
                        .followedByAny("t").where(ofType("Trade")).where(new Pricier("q"))
                        .followedByAny("h").where(ofType("Halt")).where(new Pricier("t"))
                        .within(Duration.ofMillis(window + 1));
        return found(CEP.pattern(relevant, pattern), match -> new long[] {time(match, "q"), time(match, "t"), time(match, "h")});
    }

    private static DataStream<long[]> rising(DataStream<Event> events, long window) {
        DataStream<Event> relevant = events.filter(event -> event.is("A") || event.is("B") || event.is("C"));
        Pattern<Event, ?> pattern =
                begin("a", ofType("A"))
                        .followedBy("b").where(ofType("B")).where(new Pricier("a"))
                        .followedBy("c").where(ofType("C")).where(new Pricier("b"))
                        .within(Duration.ofMillis(window + 1));
        PatternSelectFunction<Event, long[]> times = match -> new long[] {time(match, "a"), time(match, "b"), time(match, "c")};
        return found(CEP.pattern(relevant.keyBy(event -> event.streamKey), pattern), times);
    }

    /** Rules with the types of three events each, behind the number of the first: "0:A B C;D E F". A match also has its rule's number. */
    static DataStream<long[]> rules(DataStream<Event> events, long window, String rules) {
        DataStream<long[]> all = null;
        String[] parts = rules.split(":");
        String[] each = parts[1].split(";");
        for (int place = 0; place < each.length; place++) {
            DataStream<long[]> found = rule(Long.parseLong(parts[0]) + place, each[place].split(" "), events, window);
            all = all == null ? found : all.union(found);
        }
        return all;
    }

    private static DataStream<long[]> rule(long number, String[] types, DataStream<Event> events, long window) {
        DataStream<Event> relevant = events.filter(event -> event.is(types[0]) || event.is(types[1]) || event.is(types[2]));
        Pattern<Event, ?> pattern =
                begin("a", ofType(types[0]))
                        .followedBy("b").where(ofType(types[1])).where(new Pricier("a"))
                        .followedBy("c").where(ofType(types[2])).where(new Pricier("b"))
                        .within(Duration.ofMillis(window + 1));
        PatternSelectFunction<Event, long[]> times = match -> new long[] {number, time(match, "a"), time(match, "b"), time(match, "c")};
        return found(CEP.pattern(relevant.keyBy(event -> event.streamKey), pattern), times);
    }

    private static Pattern<Event, Event> begin(String name, IterativeCondition<Event> condition) {
        return Pattern.<Event>begin(name, AfterMatchSkipStrategy.noSkip()).where(condition);
    }

    private static IterativeCondition<Event> ofType(String type) {
        return SimpleCondition.of(event -> event.is(type));
    }

    private static DataStream<long[]> found(PatternStream<Event> stream, PatternSelectFunction<Event, long[]> times) {
        return stream.select(times);
    }

    private static long time(Map<String, List<Event>> match, String name) {
        return match.get(name).get(0).ts;
    }

    /** A higher price than that of the event bound to `earlier`. */
    private static final class Pricier extends IterativeCondition<Event> {
        private final String earlier;

        Pricier(String earlier) {
            this.earlier = earlier;
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            return context.getEventsForPattern(earlier).iterator().next().price < event.price;
        }
    }

    /** Whether the event is a B with a C, a P and a D before it, or is not. */
    private static final class Completes extends IterativeCondition<Event> {
        private final boolean wanted;

        Completes(boolean wanted) {
            this.wanted = wanted;
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            return (event.is("B") && allBound(context)) == wanted;
        }

        private static boolean allBound(Context<Event> context) throws Exception {
            int bound = 0;
            for (String name : List.of("s", "x")) {
                for (Event event : context.getEventsForPattern(name)) {
                    int place = "CPD".indexOf(event.type);
                    bound |= place < 0 ? 0 : 1 << place;
                }
            }
            return bound == 0b111;
        }
    }
}
