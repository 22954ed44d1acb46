package gpu_cep.spark;

/** A word or sign of a statement, in capital letters, or a whole MATCH_RECOGNIZE (…), and where it stands. */
final class Word {
    final String text;
    final int begin;
    final int end;
    final boolean clause;

    Word(String text, int begin, int end, boolean clause) {
        this.text = text;
        this.begin = begin;
        this.end = end;
        this.clause = clause;
    }
}
