package gpu_cep.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/** Reads statements word by word, as Spark does, and the brackets of MATCH_RECOGNIZE as the standard does. */
final class Words {
    private static final String OPENING = "MATCH_RECOGNIZE";
    private static final Pattern MENTION = Pattern.compile(OPENING, Pattern.CASE_INSENSITIVE);
    private static final String NAME = "\\s*(\\w+|`[^`]*`)\\s*";
    /** What no clause is: the columns of a relation that is called match_recognize. */
    private static final Pattern COLUMNS = Pattern.compile("\\(" + NAME + "(," + NAME + ")*\\)");

    private Words() {}

    /** Returns whether the first word of a clause stands anywhere in a text. */
    static boolean mention(String text) {
        return MENTION.matcher(text).find();
    }

    /** Returns the words and signs of a statement, without its comments. */
    static List of(String text) {
        List words = new ArrayList();
        int at = 0;
        while (at < text.length()) {
            int code = afterBlanks(text, at);
            if (code > at) {
                at = code;
            } else {
                Word word = wordAt(text, at);
                words.add(word);
                at = word.end;
            }
        }
        return words;
    }

    private static Word wordAt(String text, int begin) {
        int end = afterQuoted(text, begin);
        if (end == begin) {
            while (end < text.length() && isOfName(text.charAt(end))) {
                end++;
            }
            end = Math.max(end, begin + 1);
        }
        String word = text.substring(begin, end).toUpperCase(Locale.ROOT);
        int last = word.equals(OPENING) ? endOfClause(text, afterBlanks(text, end)) : -1;
        return new Word(word, begin, last < 0 ? end : last, last >= 0);
    }

    private static boolean isOfName(char each) {
        return Character.isLetterOrDigit(each) || each == '_';
    }

    /** Returns the place behind white space and comments, as Spark reads them. */
    private static int afterBlanks(String text, int begin) {
        int at = begin;
        int before = -1;
        while (at > before && at < text.length()) {
            before = at;
            if (Character.isWhitespace(text.charAt(at))) {
                at++;
            } else if (text.startsWith("--", at)) {
                at = afterLine(text, at);
            } else if (text.startsWith("/*", at)) {
                at = afterNested(text, at);
            }
        }
        return at;
    }

    /** Returns the place behind a comment of one line, which a backslash at its end continues. */
    private static int afterLine(String text, int begin) {
        int end = text.indexOf('\n', begin);
        while (end > 0 && text.charAt(end - 1) == '\\') {
            end = text.indexOf('\n', end + 1);
        }
        return end < 0 ? text.length() : end + 1;
    }

    private static int afterNested(String text, int begin) {
        int depth = 1;
        int at = begin + 2;
        while (depth > 0 && at < text.length()) {
            boolean opens = text.startsWith("/*", at);
            boolean closes = text.startsWith("*/", at);
            depth += opens ? 1 : closes ? -1 : 0;
            at += opens || closes ? 2 : 1;
        }
        return at;
    }

    /** Returns the place behind a text or a quoted name, as Spark reads them; the same place if none begins there. */
    private static int afterQuoted(String text, int begin) {
        boolean raw = (text.startsWith("r", begin) || text.startsWith("R", begin)) && begin + 1 < text.length();
        char quote = text.charAt(raw ? begin + 1 : begin);
        if (quote == '\'' || quote == '"') {
            return raw ? behind(text, quote, begin + 2) : afterText(text, quote, begin + 1);
        }
        if (quote == '`' && !raw) {
            return behind(text, quote, begin + 1);
        }
        return quote == '$' && !raw ? afterDollars(text, begin) : begin;
    }

    private static int behind(String text, char quote, int begin) {
        int end = text.indexOf(quote, begin);
        return end < 0 ? text.length() : end + 1;
    }

    private static int afterText(String text, char quote, int begin) {
        int at = begin;
        while (at < text.length() && text.charAt(at) != quote) {
            at += text.charAt(at) == '\\' ? 2 : 1;
        }
        return Math.min(at + 1, text.length());
    }

    /** Returns the place behind a text between two of the same {@code $word$}. */
    private static int afterDollars(String text, int begin) {
        int at = begin + 1;
        while (at < text.length() && Character.isLetter(text.charAt(at))) {
            at++;
        }
        if (!text.startsWith("$", at)) {
            return begin;
        }
        String quotes = text.substring(begin, at + 1);
        int end = text.indexOf(quotes, at + 1);
        return end < 0 ? text.length() : end + quotes.length();
    }

    /** Returns where the clause ends whose bracket stands at a place; -1 if none does, or it is not closed. */
    private static int endOfClause(String text, int begin) {
        int depth = 0;
        int at = begin;
        while (text.startsWith("(", begin) && at < text.length()) {
            char each = text.charAt(at);
            depth += each == '(' ? 1 : each == ')' ? -1 : 0;
            if (depth == 0) {
                return COLUMNS.matcher(text.substring(begin, at + 1)).matches() ? -1 : at + 1;
            }
            at = afterHidden(text, at);
        }
        return -1;
    }

    /** Returns the place behind what hides brackets in a clause, or else behind one character. */
    private static int afterHidden(String text, int begin) {
        char each = text.charAt(begin);
        if (each == '\'' || each == '"' || each == '`') {
            return behind(text, each, begin + 1);
        }
        if (text.startsWith("--", begin)) {
            return behind(text, '\n', begin);
        }
        if (text.startsWith("/*", begin)) {
            int end = text.indexOf("*/", begin + 2);
            return end < 0 ? text.length() : end + 2;
        }
        return begin + 1;
    }
}
