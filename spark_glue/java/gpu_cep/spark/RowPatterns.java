package gpu_cep.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Finds each MATCH_RECOGNIZE of a statement and the relation that it reads, and writes both as a call of gpu_match. */
public final class RowPatterns {
    private static final Set CLAUSES = new HashSet(Arrays.asList(new String[] {
        "FROM", "JOIN", "ON", "USING", "SELECT", "WHERE", "HAVING", "BY", "SET", "LIMIT", "QUALIFY"
    }));
    private static final Set OF_FROM = new HashSet(Arrays.asList(new String[] {"FROM", "JOIN", "ON", "USING"}));

    private RowPatterns() {}

    /** Returns a statement with calls in place of its row patterns; one that stands behind no relation is left to Spark to refuse. */
    public static String asCalls(String text) {
        if (!Words.mention(text)) {
            return text;
        }
        List words = Words.of(text);
        int[] opened = new int[words.size()];
        boolean[] called = new boolean[words.size()];
        for (int i = 0; i < words.size(); i++) {
            int relation = ((Word) words.get(i)).clause ? relationBefore(i, words) : -1;
            called[i] = relation >= 0;
            if (called[i]) {
                opened[relation]++;
            }
        }
        return written(text, words, opened, called);
    }

    /** Returns the text with the beginnings of calls before some words, and their ends in place of some clauses. */
    private static String written(String text, List words, int[] opened, boolean[] called) {
        StringBuilder found = new StringBuilder();
        int at = 0;
        for (int i = 0; i < words.size(); i++) {
            Word word = (Word) words.get(i);
            found.append(text, at, word.begin);
            at = word.begin;
            for (int k = 0; k < opened[i]; k++) {
                found.append(TableFunction.NAME + "(TABLE(SELECT * FROM ");
            }
            if (called[i]) {
                found.append("), pattern => ");
                appendPattern(found, text, word);
                found.append(')');
                at = word.end;
            }
        }
        return found.append(text, at, text.length()).toString();
    }

    /** Appends an expression for a clause behind as many lines and blanks as stand before it, so that errors tell its place. */
    private static void appendPattern(StringBuilder found, String text, Word clause) {
        int line = text.lastIndexOf('\n', clause.begin) + 1;
        int lines = 0;
        for (int i = 0; i < line; i++) {
            lines += text.charAt(i) == '\n' ? 1 : 0;
        }
        int blanks = text.codePointCount(line, clause.begin);
        found.append("repeat(char(10), " + lines + ") || repeat(char(32), " + blanks + ") || '");
        for (int i = clause.begin; i < clause.end; i++) {
            char each = text.charAt(i);
            // what these two mean in a text depends on the session's settings
            found.append(each == '\'' || each == '\\' ? "' || char(" + (int) each + ") || '" : String.valueOf(each));
        }
        found.append('\'');
    }

    /** Returns the number of the first word of the relation before a clause; -1 if none stands there. */
    private static int relationBefore(int clause, List words) {
        int stop = before(clause, words, true);
        String found = stop < 0 ? "" : text(stop, words);
        boolean stands = found.equals("FROM") || found.equals("JOIN");
        if (found.equals(",")) {
            // the items of SELECT have commas between them, too
            int nearest = before(stop, words, false);
            stands = nearest >= 0 && OF_FROM.contains(text(nearest, words));
        } else if (found.equals("(")) {
            stands = stop > 0 && Arrays.asList(new String[] {"FROM", "JOIN", ",", "("}).contains(text(stop - 1, words));
        }
        return stands && clause - stop > 1 ? stop + 1 : -1;
    }

    /** Returns the nearest word before another that begins a clause, opens the brackets around both or, if asked for, is a comma; or -1. */
    private static int before(int number, List words, boolean commas) {
        int depth = 0;
        int place = number - 1;
        while (place >= 0) {
            String found = text(place, words);
            if (depth == 0 && (found.equals("(") || CLAUSES.contains(found) || commas && found.equals(","))) {
                return place;
            }
            depth += found.equals(")") ? 1 : found.equals("(") ? -1 : 0;
            place--;
        }
        return -1;
    }

    private static String text(int number, List words) {
        return ((Word) words.get(number)).text;
    }
}
