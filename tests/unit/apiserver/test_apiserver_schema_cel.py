"""CEL expressions by themselves. Results were compared with a real kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.schema.cel.program import CompileProblem, EvaluationFailed, Program
from kopylite.apiserver.schema.cel.shapes import DYN, Shape, escape, parse_duration, shape_of, to_cel
from kopylite.apiserver.schema.cel.syntax import Binary, CallExpr, Literal, Select, SyntaxProblem, parse
from kopylite.apiserver.schema.node import SchemaNode

SELF: dict[str, Any] = {
    "s": "ab", "n": 2, "l": [1, 2, 3], "m": {"a": "1", "b": "2"}, "o": {"x": 1}, "a.b": 7, "words": ["b", "a", "b"],
}  # fmt: skip


def value_of(expression: str, **variables: Any) -> Any:
    scope = {"self": DYN, **dict.fromkeys(variables, DYN)}
    program = Program(expression, scope)
    return program.evaluate({"self": SELF, **variables})


class TestParsing:
    def test_operators_bind_as_in_cel(self) -> None:
        node = parse("a || b && c == d + e * -f.g")
        assert isinstance(node, Binary)
        assert node.operator == "||"
        assert isinstance(node.right, Binary)
        assert node.right.operator == "&&"

    def test_selections_and_calls_chain(self) -> None:
        node = parse("self.?a.b(1)[0].`c.d`")
        assert isinstance(node, Select)
        assert node.field == "c.d"

    @pytest.mark.parametrize("text", ["'it''s'", "1 +", "(1", "[1, 2", "{'a' 1}", "a.", "a b", "1 = 2", "#"])
    def test_what_is_no_expression_is_refused(self, text: str) -> None:
        with pytest.raises(SyntaxProblem):
            parse(text)

    @pytest.mark.parametrize(
        "text", ["'it\\'s'", 'r"\\d"', "'''a\nb'''", "0x1F", "1.5e3", "5u", "b'x'", "true", "null", "rb'x'"]
    )
    def test_literals_stay_as_they_are_written(self, text: str) -> None:
        assert parse(text) == Literal(text)

    def test_comments_and_trailing_commas_are_fine(self) -> None:
        assert isinstance(parse("f([1, 2,], {'a': 1,}) // why"), CallExpr)

    def test_a_problem_shows_its_place(self) -> None:
        with pytest.raises(SyntaxProblem) as caught:
            parse("a &&\n  b +")
        assert caught.value.pretty("a &&\n  b +").startswith(
            "ERROR: <input>:2:6: Syntax error: mismatched input '<EOF>'"
        )
        assert caught.value.pretty("a &&\n  b +").endswith("\n |   b +\n | .....^")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # macros, of one and of two variables
        ("self.l.all(x, x > 0)", True), ("self.l.exists(x, x > 2)", True), ("self.l.exists_one(x, x > 1)", False),
        ("self.l.map(x, x * 2)", [2, 4, 6]), ("self.l.map(x, x > 1, x * 2)", [4, 6]),
        ("self.l.filter(x, x > 1)", [2, 3]),
        ("self.m.all(k, self.m[k] != '')", True), ("self.m.all(k, v, v != '2')", False),
        ("self.l.exists(i, v, i + v == 5)", True), ("self.m.existsOne(k, v, v == '1')", True),
        ("self.l.transformList(i, v, i * v)", [0, 2, 6]), ("self.l.transformList(i, v, i > 0, v)", [2, 3]),
        ("self.m.transformMap(k, v, v + 'x')", {"a": "1x", "b": "2x"}),
        ("self.m.transformMapEntry(k, v, {v: k})", {"1": "a", "2": "b"}),
        # optional values
        ("self.?o.x.orValue(9)", 1), ("self.?q.x.orValue(9)", 9), ("self.o.?q.hasValue()", False),
        ("self.m[?'a'].orValue('-')", "1"), ("self.l[?7].orValue(0)", 0), ("has(self.?q.x)", False),
        ("self.?o.optMap(o, o.x + 1).orValue(0)", 2), ("self.?q.optMap(o, o.x + 1).orValue(0)", 0),
        ("self.?o.optFlatMap(o, o.?y).hasValue()", False), ("[1, ?self.?q, ?self.?n]", [1, 2]),
        ("{'a': 1, ?'b': self.?q, ?'c': self.?n}", {"a": 1, "c": 2}), ("optional.of(1).hasValue()", True),
        # names
        ("self.`a.b`", 7), ("has(self.`a.b`)", True), ("has(self.q)", False), ("'a' in self.m", True),
        # strings
        ("size('héé')", 3), ("'héé'.size()", 3), ("self.s.charAt(1)", "b"), ("self.s.indexOf('b')", 1),
        ("'abab'.lastIndexOf('ab')", 2), ("'aÉ'.upperAscii()", "AÉ"), ("'Aé'.lowerAscii()", "aé"),
        ("'a-b-c'.split('-')", ["a", "b", "c"]), ("'a-b-c'.split('-', 2)", ["a", "b-c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.substring(1)", "bc"), ("'abc'.substring(0, 2)", "ab"), ("' a '.trim()", "a"),
        ("['a', 'b'].join('-')", "a-b"),
        ("'aaa'.replace('a', 'b', 2)", "bba"), ("'%s=%d (%.2f) %x'.format(['a', 1, 1.5, 255])", "a=1 (1.50) ff"),
        ("'%s'.format([[1, 'a', {'k': true}]])", "[1, a, {k: true}]"), ("strings.quote('a\"')", '"a\\""'),
        ("string(1.0)", "1"), ("string(true)", "true"), ("string(duration('90s'))", "90s"),
        ("string(timestamp('2020-01-01T00:00:00Z'))", "2020-01-01T00:00:00Z"), ("bool('true')", True),
        # regular expressions
        ("'a12b3'.find('[0-9]+')", "12"), ("'a12b3'.findAll('[0-9]+')", ["12", "3"]),
        ("'a12b3'.findAll('[0-9]+', 1)", ["12"]),
        ("'x'.find('y')", ""), ("'abc'.matches('^a')", True),
        # lists and sets
        ("self.l.sum()", 6), ("self.l.min()", 1), ("self.l.max()", 3), ("self.l.isSorted()", True), ("[].sum()", 0),
        ("self.words.indexOf('b')", 0), ("self.words.lastIndexOf('b')", 2), ("self.words.distinct()", ["b", "a"]),
        ("self.words.sort()", ["a", "b", "b"]), ("self.l.reverse()", [3, 2, 1]), ("self.l.slice(1, 3)", [2, 3]),
        ("[[1], [2, [3]]].flatten()", [1, 2, [3]]), ("[[1], [2, [3]]].flatten(2)", [1, 2, 3]),
        ("lists.range(3)", [0, 1, 2]),
        ("self.l.first().value()", 1), ("self.l.last().value()", 3), ("sets.contains([1, 2], [1])", True),
        ("sets.equivalent([1, 1], [1])", True), ("sets.intersects([1], [2])", False),
        # quantities
        ("quantity('1Ki') == quantity('1024')", True), ("quantity('1500m').compareTo(quantity('1.5'))", 0),
        ("quantity('1Gi').isGreaterThan(quantity('1G'))", True), ("quantity('1k').add(500).asInteger()", 1500),
        ("quantity('1').sub(quantity('3')).sign()", -1), ("quantity('1.5').isInteger()", False),
        ("isQuantity('x')", False),
        ("quantity('1e3').asApproximateFloat()", 1000.0), ("quantity('1').isLessThan(quantity('2'))", True),
        # addresses, networks, URLs, versions, formats
        ("ip('::1').family()", 6), ("ip('127.0.0.1').isLoopback()", True), ("isIP('1.2.3.999')", False),
        ("ip.isCanonical('::0001')", False), ("ip('10.0.0.1').isGlobalUnicast()", True),
        ("ip('0.0.0.0').isUnspecified()", True),
        ("ip('169.254.0.1').isLinkLocalUnicast()", True), ("ip('224.0.0.1').isLinkLocalMulticast()", True),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True), ("cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))", False),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", True),
        ("cidr('10.1.2.3/8').prefixLength()", 8), ("cidr('10.1.2.3/8').ip() == ip('10.1.2.3')", True),
        ("isCIDR('10/8')", False),
        ("url('https://a.b:80/c?d=e').getHost()", "a.b:80"), ("url('https://[::1]:80/').getHostname()", "::1"),
        ("url('https://a.b:80/c?d=e').getPort()", "80"), ("url('https://a.b/c%20d').getEscapedPath()", "/c%20d"),
        ("url('https://a.b/?d=e').getQuery()", {"d": ["e"]}), ("url('/a').getScheme()", ""), ("isURL('a')", False),
        ("semver('1.2.3').major()", 1), ("semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))", True),
        ("isSemver('v1.2')", False),
        ("semver('v1.2', true).minor()", 2), ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("format.dns1123Label().validate('a_b').hasValue()", True),
        ("format.dns1123Label().validate('ab').hasValue()", False),
        ("format.named('uuid').hasValue()", True), ("format.named('nope').hasValue()", False),
        # times
        ("timestamp('2020-02-03T04:05:06Z').getMonth()", 1), ("timestamp('2020-02-03T04:05:06Z').getDate()", 3),
        ("timestamp('2020-02-03T04:05:06Z').getHours('America/New_York')", 23), ("duration('90s').getMinutes()", 1),
        ("timestamp('2020-02-03T04:05:06Z').getDayOfWeek()", 1), ("duration('1h') > duration('59m')", True),
    ],
)  # fmt: skip
def test_an_expression_has_its_value(expression: str, value: Any) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            "quantity('x')",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("[].min()", "min called on empty list"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.charAt(9)", "index out of range: 9"),
        ("ip('x')", 'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP'),
        (
            "cidr('1.2.3.4')",
            ("network address parse error during conversion from string: network address parse error during conversion "
            "from string: netip.ParsePrefix(\"1.2.3.4\"): no '/'"),
        ),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("semver('1.02.3')", 'Minor number must not contain leading zeroes "02"'),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("url('a')", 'URL parse error during conversion from string: parse "a": invalid URI for request'),
        ("bool('x')", "type conversion error from 'string' to 'bool'"),
        ("9223372036854775807 + self.n", "integer overflow"),
        ("self.s.sum()", "no such overload"),
    ],
)  # fmt: skip
def test_a_failing_call_says_what_the_server_says(expression: str, text: str) -> None:
    with pytest.raises(EvaluationFailed) as caught:
        value_of(expression)
    assert str(caught.value) == text


def test_an_error_beside_a_decision_does_not_count() -> None:
    assert value_of("true || self.nope == 1")
    assert value_of("self.nope == 1 || true")
    assert not value_of("self.nope == 1 && false")


@pytest.mark.parametrize("expression", ["math.greatest(1, 2) == 2", "self.s.nope()", "other == 1", "int.of(1)"])
def test_what_kubernetes_does_not_know_does_not_compile(expression: str) -> None:
    with pytest.raises(CompileProblem, match="undeclared reference"):
        Program(expression, {"self": DYN})


def test_names_with_odd_characters_have_escaped_forms() -> None:
    assert escape("a-b.c/d") == "a__dash__b__dot__c__slash__d"
    assert escape("namespace") == "__namespace__"
    assert escape("a__b") == "a__underscores__b"
    assert escape("a b") is None


class TestShapes:
    def test_only_values_with_a_schema_are_seen(self) -> None:
        schema = {
            "type": "object",
            "properties": {
                "free": {"x-kubernetes-preserve-unknown-fields": True},
                "frees": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
                "a": {"type": "string"},
            },
        }
        shape = shape_of(SchemaNode(schema))
        assert shape is not None
        assert list(shape.fields) == ["a"]

    def test_formats_become_types(self) -> None:
        schema = {
            "type": "object",
            "properties": {
                "d": {"type": "string", "format": "duration"},
                "t": {"type": "string", "format": "date-time"},
                "b": {"type": "string", "format": "byte"},
                "n": {"type": "number"},
                "i": {"type": "integer"},
            },
        }
        value = {"d": "1m30s", "t": "2020-01-01T00:00:00Z", "b": "YWJj", "n": 1, "i": 2.0, "null": None}
        converted = to_cel(value, shape_of(SchemaNode(schema)))
        assert converted["d"].total_seconds() == 90
        assert converted["t"].year == 2020
        assert converted["b"] == b"abc"
        assert isinstance(converted["n"], float)
        assert isinstance(converted["i"], int)
        assert "null" not in converted

    def test_lists_of_type_set_and_map_have_no_order(self) -> None:
        sets = Shape("list", element=Shape("string"), list_type="set")
        maps = Shape("list", element=DYN, list_type="map", keys=("k",))
        scope = {"self": Shape("object", {"s": ("s", sets), "m": ("m", maps)})}
        value = {"s": ["a", "b"], "m": [{"k": 1, "v": 1}, {"k": 2, "v": 2}]}

        def result(expression: str) -> Any:
            program = Program(expression, scope)
            return program.evaluate({"self": value})

        assert result("self.s == ['b', 'a']")
        assert result("self.s != ['b', 'c']")
        assert result("self.s + ['a', 'c'] == ['c', 'b', 'a']")
        assert result("self.m == [{'k': 2, 'v': 2}, {'k': 1, 'v': 1}]")
        assert result("self.m + [{'k': 1, 'v': 9}] == [{'k': 1, 'v': 9}, {'k': 2, 'v': 2}]")
        assert not result("['b', 'a'] == self.s")

    @pytest.mark.parametrize(
        ("text", "seconds"), [("-1.5h", -5400), ("0", 0), ("2 minutes", 120), ("1 day 2 hr", 93600)]
    )
    def test_durations_are_read_in_go_and_in_words(self, text: str, seconds: float) -> None:
        duration = parse_duration(text)
        assert duration is not None
        assert duration.total_seconds() == seconds

    def test_other_texts_are_no_durations(self) -> None:
        assert parse_duration("soon") is None
