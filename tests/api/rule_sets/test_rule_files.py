"""Rule sets come from folders of queries, and from JSON and YAML; what is no rule set is refused by name."""

from __future__ import annotations

import json
import sys

import pytest

import gpu_cep as cep

BUY, SELL = "PATTERN SEQ(Buy b) WITHIN 5", "PATTERN SEQ(Sell s) WITHIN 5"
OPTIONS = {"partition_by": ["user"], "strategy": "skip_till_any_match"}
EXPECTED = {"buy": cep.Rule(BUY), "sell": cep.Rule(SELL, OPTIONS, "what is sold")}
LISTED = [{"name": "buy", "pattern": BUY}, {"name": "sell", "pattern": SELL, "options": OPTIONS, "description": "what is sold"}]
NAMED = {"buy": BUY, "sell": {"pattern": SELL, "options": OPTIONS, "description": "what is sold"}}


@pytest.mark.parametrize("held", [LISTED, NAMED, {"rules": LISTED}, {"rules": NAMED}])
@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_a_file_gives_rules_in_its_order(tmp_path, held, suffix):
    path = tmp_path / f"rules{suffix}"
    # JSON is YAML, too
    path.write_text(json.dumps(held))
    assert cep.load_rules(path) == EXPECTED
    assert list(cep.load_rules(str(path))) == ["buy", "sell"]


def test_options_of_all_rules_give_way_to_those_of_one(tmp_path):
    path = tmp_path / "rules.yaml"
    common = "options: {timestamp: at, strategy: strict_contiguity}"
    path.write_text(f"{common}\nrules:\n  buy: {BUY}\n  sell:\n    pattern: {SELL}\n    options: {{timestamp: ts}}\n")
    found = cep.load_rules(path)
    assert found["buy"].options == {"timestamp": "at", "strategy": "strict_contiguity"}
    assert found["sell"].options == {"timestamp": "ts", "strategy": "strict_contiguity"}


def test_mappings_of_yaml_are_merged_as_often_as_they_say(tmp_path):
    path = tmp_path / "rules.yaml"
    first, second = f"&first {{name: buy, pattern: {BUY}}}", f"&second {{name: sell, pattern: {SELL}, description: what}}"
    path.write_text(f"- {first}\n- {second}\n- <<: *first\n  <<: *second\n  name: both\n")
    assert cep.load_rules(path)["both"].description == "what"


def test_a_folder_has_a_rule_in_each_file(tmp_path):
    for name, text in (("sell", SELL), ("buy", BUY), ("notes.txt", "no rule")):
        (tmp_path / (name if "." in name else f"{name}.cep")).write_text(text)
    assert cep.load_rules(tmp_path) == {"buy": cep.Rule(BUY), "sell": cep.Rule(SELL)}
    assert cep.load_rules(tmp_path / "buy.cep") == {"buy": cep.Rule(BUY)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rules.json", "[1", "cannot read the rules"),
        ("rules.json", "3", "expected a list of rules, or a mapping of names to patterns, not int"),
        ("rules.json", "[]", "there is no pattern"),
        ("rules.json", '[{"pattern": "PATTERN SEQ(a)"}]', "rule 1 has no 'name'"),
        ("rules.json", '{"a": "x", "a": "y"}', "'a' is there more than once"),
        ("rules.yaml", "a: x\na: y", "'a' is there more than once"),
        ("rules.yaml", "rules: [{name: a, pattern: x, pattern: y}, &self [*self]]", "'pattern' is there more than once"),
        ("rules.json", '[{"name": "a", "pattern": "x"}, {"name": "a", "pattern": "y"}]', "there is more than one rule 'a'"),
        ("rules.json", '{"a": {"patern": "x"}}', "did you mean 'pattern'?"),
        ("rules.json", '{"a": {"pattern": 1}}', "'pattern' must be the text of a query, not 1"),
        ("rules.json", '{"a": {"pattern": "x", "options": []}, "b": 2}', "rule 'b': expected a mapping, not 2"),
        ("rules.json", '{"a": {"pattern": "x", "options": {"tiez": 1}}}', "did you mean 'ties'?"),
        ("rules.json", '{"rules": {"a": "x"}, "option": {}}', "did you mean 'options'?"),
        ("rules.yaml", "a: [", "cannot read the rules"),
        ("rules.yaml", "a: x\n'a': y", "'a' is there more than once"),
        ("rules.yaml", "1: PATTERN SEQ(a)\n'1': PATTERN SEQ(b)", "the name of a pattern must be text, not 1"),
        ("rules.yaml", "1: PATTERN SEQ(a)", "the name of a pattern must be text, not 1"),
        ("rules.yaml", "a: \x01", "cannot read the rules"),
        pytest.param("rules.yaml", "a:\n- " + 5_000 * "[" + 5_000 * "]", "line 2: values are nested too deep", id="deep YAML"),
        pytest.param("rules.json", '{"]": 1,\n"a": ' + 50_000 * "[" + "\n1", "line 2: values are nested too deep", id="deep JSON"),
        ("rules.json", "", "there is no pattern in it"),
        ("rules.yaml", "rules:\n", "there is no pattern in it"),
        ("rules.yaml", "rules: {a: x}\noptions: {output: count}", "options: 'output' is no option of a rule"),
        ("rules.yaml", "true: PATTERN SEQ(a)", "must be text, not True\n  hint: put it in quotes"),
        ("rules.yaml", "- {name: 1, pattern: x}", "rule 1: 'name' must be text, not 1"),
        ("rules.yaml", "a: {name: b, pattern: x}", "rule 'a': its 'name' is 'b'"),
        ("rules.yaml", "name: a\npattern: x", "this is one rule, 'a'"),
        ("rules.yaml", "a: PATTERN SEQ(A a) WHERE a.x = 'b: c'", "stands in quotes"),
        ("rules.toml", "", "cannot tell the format of a rule set from its suffix"),
    ],
)
def test_what_is_no_rule_set_is_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(cep.PatternError) as caught:
        cep.load_rules(tmp_path / name)
    assert message in str(caught.value)


def test_what_is_not_there_is_refused(tmp_path):
    for name in ("rules.json", "rules"):
        with pytest.raises(cep.PatternError, match="there is no such file or folder"):
            cep.load_rules(tmp_path / name)
    with pytest.raises(cep.PatternError, match=r"there is no \.cep file in this folder"):
        cep.load_rules(tmp_path)
    (tmp_path / "rules.yaml").touch()
    with pytest.raises(cep.PatternError, match=r"read by its own path: .*rules\.yaml"):
        cep.load_rules(tmp_path)
    for text in (BUY, f"{BUY} -- {500 * 'long '}"):
        with pytest.raises(cep.PatternError, match=r"match\(\) takes the text"):
            cep.load_rules(text)
    with pytest.raises(cep.PatternError, match="path of a file or folder, not dict"):
        cep.load_rules({"buy": BUY})


def test_marks_before_the_text_and_suffixes_in_capitals_are_read(tmp_path):
    (tmp_path / "buy.CEP").write_text(BUY, encoding="utf-8-sig")
    (tmp_path / "rules.JSON").write_text(json.dumps({"buy": BUY}), encoding="utf-8-sig")
    for path in (tmp_path, tmp_path / "buy.CEP", tmp_path / "rules.JSON"):
        assert cep.load_rules(path) == {"buy": cep.Rule(BUY)}


def test_yaml_without_its_package_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "rules.yaml").write_text(f"buy: {BUY}")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(cep.EngineUnavailable, match="needs PyYAML, which is not installed: install pyyaml, or give JSON"):
        cep.load_rules(tmp_path / "rules.yaml")
