use super::parse::OPERAND;
use super::*;
use crate::{decode_exactly, encode};
use proptest::prelude::*;

fn policy(text: &str) -> Policy {
    Policy::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    Policy::parse(text).map(|policy| policy.to_string()).expect_err(text).to_string()
}

fn is_satisfied(policy: &Policy, endorsers: &[&str]) -> bool {
    policy.is_satisfied(&|name| endorsers.contains(&name))
}

fn choose<'a>(text: &str, available: &str, chosen: impl Into<Option<&'a str>>) {
    let available: Vec<_> = available.split_whitespace().collect();
    let found = policy(text).choose(&available).map(|chosen| chosen.join(" "));
    assert_eq!(found.as_deref(), chosen.into(), "{text}");
}

#[test]
fn and_binds_tighter_than_or() {
    assert_eq!(policy("a OR b AND c").to_string(), "a OR (b AND c)");
    assert_eq!(policy("a AND b OR c AND d"), policy("(a AND b) OR (c AND d)"));
    assert_eq!(policy("a AND (b OR c)").to_string(), "a AND (b OR c)");
    assert!(is_satisfied(&policy("a OR b AND c"), &["a"]));
    assert!(!is_satisfied(&policy("(a OR b) AND c"), &["a"]));
}

#[test]
fn canonical_text_is_the_shortest_way_to_say_it_clearly() {
    let canonical = [
        ("a", "a"),
        (" ((\ta\n)) ", "a"),
        ("a and b", "a AND b"),
        ("a AND (b AND (c AND d))", "a AND b AND c AND d"),
        ("a OR (b OR c)", "a OR b OR c"),
        ("2 OF(a,b,c)", "2 of (a, b, c)"),
        ("002 of (a, b, c)", "2 of (a, b, c)"),
        ("1 of (a)", "a"),
        ("all of (a, b, c)", "a AND b AND c"),
        ("3 of (a, b AND c, d)", "a AND b AND c AND d"),
        ("Any Of (a, 1 of (b, c))", "a OR b OR c"),
        ("2 of (a, b AND c, 1 of (d, e))", "2 of (a, b AND c, d OR e)"),
        ("2 of (2 of (a, b, c), d, e)", "2 of (2 of (a, b, c), d, e)"),
        ("a AND 2 of (b, c, d)", "a AND 2 of (b, c, d)"),
    ];
    for (text, expected) in canonical {
        assert_eq!(policy(text).to_string(), expected, "{text}");
        assert_eq!(policy(expected).to_string(), expected);
    }
}

#[test]
fn names_are_quoted_where_they_are_no_words() {
    let canonical = [
        (r#""bank""#, "bank"),
        ("_bank-1.example", "_bank-1.example"),
        (r#""all" AND "Or""#, r#""all" AND "Or""#),
        (r#""3com" OR "2""#, r#""3com" OR "2""#),
        (r#"2 of ("2", "of", "a ""b"" c")"#, r#"2 of ("2", "of", "a ""b"" c")"#),
        (r#""""""#, r#""""""#),
        ("\"Sparkasse Köln\"", "\"Sparkasse Köln\""),
        ("\"a AND b\" AND b", "\"a AND b\" AND b"),
        ("Bank AND bank", "Bank AND bank"),
        ("nothing AND order", "nothing AND order"),
    ];
    for (text, expected) in canonical {
        assert_eq!(policy(text).to_string(), expected);
    }
    assert_eq!(policy(r#""a ""b"" c""#).organisations(), BTreeSet::from([r#"a "b" c"#]));
}

#[test]
fn an_endorsement_counts_in_every_operand_that_mentions_its_organisation() {
    let roles = policy("2 of (a, a OR b, c)");
    assert!(is_satisfied(&roles, &["a"]));
    assert!(!is_satisfied(&roles, &["b"]));
    assert!(is_satisfied(&roles, &["b", "c"]));
}

#[test]
fn every_mistake_says_where_it_is_and_what_to_do() {
    const NAME_SOMEBODY: &str = "name an organisation, or several: `2 of (a, b AND c)`";
    const JOIN: &str = "join operands with `AND` or `OR`, and write a name with spaces in double quotes";
    const COUNT_OPERANDS: &str = "count operands, not the organisations in them";
    const ONCE: &str = "name it once, it does not count twice";
    let threshold = |operands| format!("a number from 1 to {operands}, which is how many operands follow");
    let mistakes = [
        ("", 0, OPERAND, "the end", NAME_SOMEBODY),
        ("a AND ", 6, OPERAND, "the end", NAME_SOMEBODY),
        ("2 of (a, b,)", 11, OPERAND, "`)`", NAME_SOMEBODY),
        (
            "a AND OR b",
            6,
            OPERAND,
            "`OR`",
            "name what `OR` is about; an organisation of that name is written \"OR\"",
        ),
        (
            "a AND 3com",
            6,
            OPERAND,
            "`3com`",
            "a name that does not begin with a letter or `_`, or has other characters than letters, digits, `_`, \
             `-` and `.`, is written in double quotes: \"3com\"",
        ),
        ("a && b", 2, "`AND`, `OR` or the end", "`&&`", JOIN),
        ("a, b", 1, "`AND`, `OR` or the end", "`,`", "write a number before a list: `2 of (a, b, c)`"),
        (
            "a of (b)",
            2,
            "`AND`, `OR` or the end",
            "`of`",
            "write a number, `ALL` or `ANY` before `OF`: `2 of (a, b, c)`",
        ),
        ("a) AND b", 1, "`AND`, `OR` or the end", "`)`", "leave it out, or open a parenthesis before"),
        ("a AND (b OR c", 13, "`AND`, `OR` or `)`", "the end", "close the parenthesis of byte 6"),
        ("2 of (a, b c)", 11, "`AND`, `OR`, `,` or `)`", "`c`", JOIN),
        (
            "2 (a, b)",
            2,
            "`OF`",
            "`(`",
            "write `2 of (a, b, c)`; an organisation of that name is written \"2\"",
        ),
        (
            "all AND b",
            4,
            "`OF`",
            "`AND`",
            "write `all of (a, b, c)`; an organisation of that name is written \"all\"",
        ),
        ("2 of a, b", 5, "`(`", "`a`", "write what `OF` counts in parentheses: `2 of (a, b, c)`"),
        (
            "a OR \"b",
            7,
            "`\"` at the end of a name",
            "the end",
            "close the quote of byte 5; a quote in a name is written twice",
        ),
        (
            "a OR \"\"",
            5,
            "an organisation's name of 1 to 63 bytes",
            "0 bytes",
            "write it as the charter does",
        ),
        ("4 of (a, b, c)", 0, &threshold(3), "4", COUNT_OPERANDS),
        ("a OR 0 of (a, b)", 5, &threshold(2), "0", COUNT_OPERANDS),
        ("2 of (a, b, a)", 12, "different operands of one OF", "a again", ONCE),
        ("2 of (a AND b, c, b AND a)", 18, "different operands of one OF", "b AND a again", ONCE),
        ("a AND (b AND a)", 6, "different operands of one AND", "a again", ONCE),
    ];
    for (text, byte, expected, found, advice) in mistakes {
        assert_eq!(error(text), format!("policy, byte {byte}: expected {expected}, found {found}; {advice}"));
    }
}

#[test]
fn excerpts_of_hostile_text_are_short_and_of_one_line() {
    assert!(error("a \u{7}\u{85}b").contains(r"found `\u{7}\u{85}b`;"));
    let long = error(&format!("a &{}", "x".repeat(10_000)));
    assert!(long.contains(&format!("found `&{}…`;", "x".repeat(79))), "{long}");
    for text in [format!("{} (a)", "9".repeat(10_000)), format!("{} of (a)", "9".repeat(10_000))] {
        assert!(error(&text).len() < 500, "{}", error(&text));
    }
}

#[test]
fn unknown_organisations_are_named_beside_the_members() {
    let policy = policy("2 of (bank, exchnage, \"Clearing House\") OR Bank");
    assert_eq!(policy.check(&["bank", "exchnage", "Clearing House", "Bank", "registry"]), Ok(()));
    let error = policy.check(&["bank", "exchange", "Clearing House"]).expect_err("two are unknown");
    assert_eq!(
        error.to_string(),
        "expected a policy over the ledger's organisations bank, exchange, \"Clearing House\", \
         found Bank, exchnage; correct the names, capitals count"
    );
}

#[test]
fn limits_are_named() {
    let list = |count: usize| (0..count).map(|i| format!("o{i}")).collect::<Vec<_>>();
    let organisations = "the policy has more than 128 organisations (ORGANISATIONS_MAX); write a smaller one";
    assert_eq!(policy(&list(128).join(" AND ")).organisations().len(), 128);
    assert_eq!(error(&list(129).join(" AND ")), organisations);

    let pairs = |count: usize| {
        let pair = |i: usize| format!("(o{} AND p{})", i / 64, i % 64);
        (0..count / 2).map(pair).collect::<Vec<_>>().join(" OR ")
    };
    let mentions =
        "the policy has more than 512 mentions of organisations (POLICY_MENTIONS_MAX); write a smaller one";
    assert_eq!(policy(&pairs(512)).organisations().len(), 4 + 64);
    assert_eq!(error(&pairs(514)), mentions);

    let parentheses = |count: usize| format!("{}a{}", "(".repeat(count), ")".repeat(count));
    let levels = "the policy has more than 64 levels of nesting (NESTING_MAX); write a smaller one";
    assert_eq!(policy(&parentheses(64)), policy("a"));
    assert_eq!(error(&parentheses(65)), levels);
    // Each parenthesis is two levels: AND in OR.
    let deep = |count: usize| format!("{}a{}", "a OR b AND (".repeat(count), ")".repeat(count));
    assert_eq!(policy(&deep(32)).term.levels(), 64);
    assert_eq!(error(&deep(33)), levels);

    let name = "n".repeat(63);
    assert_eq!(policy(&name).to_string(), name);
    assert_eq!(
        error(&format!("a OR {name}n")),
        "policy, byte 5: expected an organisation's name of 1 to 63 bytes, found 64 bytes; write it as the \
         charter does"
    );

    let bytes = "the policy has more than 16384 bytes of text (POLICY_BYTES_MAX); write a smaller one";
    assert_eq!(policy(&format!("{:16384}", "a")), policy("a"));
    assert_eq!(error(&format!("{:16385}", "a")), bytes);
    // Short enough as it is written, but not with the spaces of the canonical text.
    let quotes = |i: usize| format!("\"{}{i:02x}\"", "\"\"".repeat(61));
    let tight = |count: usize| format!("2 of({})", (0..count).map(quotes).collect::<Vec<_>>().join(","));
    assert!(tight(128).len() < limits::POLICY_BYTES_MAX);
    assert_eq!(policy(&tight(127)).organisations().len(), 127);
    assert_eq!(error(&tight(128)), bytes);
}

#[test]
fn a_hundred_thousand_parentheses_are_refused() {
    for text in ["(", ")", "2 of (", "a AND (", "a OR b AND (", "\"", "\"\"", ",", "a,", "1 of (a, ", "9"] {
        for count in [1_000, 100_000] {
            let text = text.repeat(count);
            assert!(Policy::parse(&text).is_err(), "{}", &text[..20]);
        }
    }
}

#[test]
fn policies_that_must_all_hold_become_one() {
    let and = |texts: &[&str]| {
        let policies: Vec<_> = texts.iter().map(|text| policy(text)).collect();
        Policy::and(policies).expect("within the limits").map(|policy| policy.to_string())
    };
    assert_eq!(and(&[]), None);
    assert_eq!(and(&["a"]).as_deref(), Some("a"));
    assert_eq!(and(&["a", "a"]).as_deref(), Some("a"));
    assert_eq!(and(&["a OR b", "b OR a"]).as_deref(), Some("a OR b"));
    assert_eq!(and(&["a AND b", "b AND c"]).as_deref(), Some("a AND b AND c"));
    assert_eq!(and(&["a", "b OR c", "2 of (a, b, c)"]).as_deref(), Some("a AND (b OR c) AND 2 of (a, b, c)"));

    let many = (0..65).map(|i| policy(&format!("o{i} OR p{i}")));
    let organisations =
        PolicyError::TooLarge { what: "organisations", limit: 128, constant: "ORGANISATIONS_MAX" };
    assert_eq!(Policy::and(many), Err(organisations));
    let endless = (0..).map(|i| policy(&format!("o{i}")));
    assert_eq!(Policy::and(endless), Err(too_many_mentions()));
    let deepest = policy(&(0..32).fold("a".to_string(), |deep, _| format!("a OR b AND ({deep})")));
    let other = policy(&format!("c OR {deepest}"));
    assert_eq!((deepest.term.levels(), other.term.levels()), (64, 64));
    assert_eq!(Policy::and([deepest, other]), Err(too_many_levels()));
}

#[test]
fn the_encoding_is_the_canonical_text_and_nothing_else() {
    let policy = policy("2 of (a, b AND \"3com\", c)");
    let bytes = encode(&policy);
    assert_eq!(bytes, encode("2 of (a, b AND \"3com\", c)"));
    assert_eq!(decode_exactly::<Policy>(&bytes).expect("what encode wrote"), policy);

    let refusal = |bytes: &[u8]| decode_exactly::<Policy>(bytes).expect_err("not canonical").to_string();
    assert_eq!(refusal(&encode("a and b")), "policy: expected its canonical text `a AND b`, found `a and b`");
    assert!(refusal(&encode("a AND")).starts_with("policy, byte 5: expected an organisation"));
    assert!(refusal(&encode(&vec![b'a', 0xFF])).starts_with("policy: invalid utf-8"));
    assert!(refusal(&u32::MAX.to_le_bytes()).contains("POLICY_BYTES_MAX"));
    for length in 0..bytes.len() {
        refusal(&bytes[..length]);
    }
    refusal(&[&bytes[..], &[0]].concat());
}

#[test]
fn the_smallest_set_is_chosen_and_the_first_named_preferred() {
    choose("a", "a b", "a");
    choose("a OR b", "b a", "b");
    choose("2 of (a, b, c)", "c b a", "c b");
    choose("2 of (a, b, c)", "c x c c a", "c a");
    choose("2 of (a, b AND c, d OR e)", "e d c b a", "e a");
    choose("2 of (a, b AND c, d OR e)", "c b e", "c b e");
    choose("(a AND b) OR c", "a b c", "c");
    choose("(a OR b) AND (b OR c)", "a b c", "b");
    choose("(a OR b) AND (c OR d)", "d b c a", "d b");
    choose("2 of (a, a OR b, c)", "c b a", "a");
    choose("2 of (a, b, c)", "a", None);
    choose("2 of (a, b, c)", "", None);
}

#[test]
fn the_search_is_better_than_the_greedy_descent() {
    let policy = policy("(a OR e) AND (b OR c) AND (b OR f) AND (c OR d) AND (c OR e) AND (d OR e)");
    let choose = |work_left| {
        let (chosen, is_exact) =
            policy.choose_with(&["a", "b", "c", "d", "e", "f"], &mut Search::new(work_left)).expect("all");
        (chosen.join(" "), is_exact)
    };
    assert_eq!(choose(0), ("a b c d".to_string(), false));
    assert_eq!(choose(limits::POLICY_CHOICE_WORK_MAX), ("b c e".to_string(), true));
}

/// The edges of a graph as `(a OR b) AND …`: a smallest set is a minimum vertex cover.
fn cover(vertices: usize, is_edge: impl Fn(usize, usize) -> bool) -> (Policy, Vec<String>) {
    let edges = (0..vertices).flat_map(|a| (a + 1..vertices).map(move |b| (a, b)));
    let edges: Vec<_> =
        edges.filter(|(a, b)| is_edge(*a, *b)).map(|(a, b)| format!("(v{a} OR v{b})")).collect();
    (policy(&edges.join(" AND ")), (0..vertices).map(|vertex| format!("v{vertex}")).collect())
}

fn assert_minimal(policy: &Policy, chosen: &[String]) {
    let chosen: Vec<_> = chosen.iter().map(String::as_str).collect();
    assert!(is_satisfied(policy, &chosen), "{policy}: {chosen:?}");
    for without in &chosen {
        let rest: Vec<_> = chosen.iter().filter(|name| *name != without).copied().collect();
        assert!(!is_satisfied(policy, &rest), "{policy}: {chosen:?} without {without}");
    }
}

#[test]
fn a_hard_choice_ends_with_a_minimal_set() {
    // A graph of 85 vertices and 255 edges, the same around every vertex: too much for the search.
    let (policy, names) = cover(85, |a, b| [1, 7, 19].contains(&((b - a) % 85).min(85 - (b - a) % 85)));
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut search = Search::new(limits::POLICY_CHOICE_WORK_MAX);
    let (chosen, is_exact) = policy.choose_with(&names, &mut search).expect("all are available");
    assert!(!is_exact);
    assert_minimal(&policy, &chosen);
    assert_eq!(policy.choose(&names), Some(chosen));
}

#[test]
fn the_largest_policies_without_repetition_are_chosen_from_exactly() {
    let names: Vec<_> = (0..128).map(|i| format!("o{i}")).collect();
    let available: Vec<_> = names.iter().map(String::as_str).rev().collect();
    let groups: Vec<_> = names.chunks(8).map(|group| format!("5 of ({})", group.join(", "))).collect();
    let policy = policy(&format!("11 of ({})", groups.join(", ")));
    let mut search = Search::new(limits::POLICY_CHOICE_WORK_MAX);
    let (chosen, is_exact) = policy.choose_with(&available, &mut search).expect("all are available");
    assert!(is_exact);
    assert_eq!(chosen.len(), 55);
    assert_eq!(chosen[..6], ["o127", "o126", "o125", "o124", "o123", "o119"]);
}

/// A policy as the tests understand it, apart from the parser and the normal form.
#[derive(Clone, Debug)]
enum Sketch {
    Name(usize),
    And(Vec<Sketch>),
    Or(Vec<Sketch>),
    Of(usize, Vec<Sketch>),
}

const NAMES: [&str; 7] = ["a", "b", "c", "\"all\"", "\"3 com\"", "f", "\"\"\"\""];

impl Sketch {
    fn name(number: usize) -> String {
        let quoted = NAMES[number];
        quoted
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'))
            .unwrap_or(quoted)
            .replace("\"\"", "\"")
    }

    fn text(&self) -> String {
        let texts = |operands: &[Sketch]| operands.iter().map(Sketch::text).collect::<Vec<_>>();
        match self {
            Sketch::Name(number) => NAMES[*number].to_string(),
            Sketch::And(operands) => format!("({})", texts(operands).join(" and ")),
            Sketch::Or(operands) => format!("( {} )", texts(operands).join(" OR ")),
            Sketch::Of(needed, operands) => format!("{needed} Of({})", texts(operands).join(",")),
        }
    }

    fn holds(&self, endorsers: usize) -> bool {
        match self {
            Sketch::Name(number) => endorsers >> number & 1 == 1,
            Sketch::And(operands) => operands.iter().all(|operand| operand.holds(endorsers)),
            Sketch::Or(operands) => operands.iter().any(|operand| operand.holds(endorsers)),
            Sketch::Of(needed, operands) => {
                operands.iter().filter(|operand| operand.holds(endorsers)).count() >= *needed
            }
        }
    }
}

/// Sketches whose text is a policy: without repeated operands.
fn sketch() -> impl Strategy<Value = (Sketch, Policy)> {
    let name = (0..NAMES.len()).prop_map(Sketch::Name);
    let sketch = name.prop_recursive(4, 24, 5, |inner| {
        let operands = prop::collection::vec(inner, 1..6);
        (0u8..3, any::<prop::sample::Index>(), operands).prop_map(|(kind, needed, mut operands)| {
            let mut seen = BTreeSet::new();
            operands.retain(|operand| seen.insert(operand.text()));
            match kind {
                0 => Sketch::And(operands),
                1 => Sketch::Or(operands),
                _ => Sketch::Of(needed.index(operands.len()) + 1, operands),
            }
        })
    });
    sketch.prop_filter_map("an operand stands twice after flattening", |sketch| {
        let policy = Policy::parse(&sketch.text());
        if let Err(error) = &policy {
            assert!(matches!(error, PolicyError::Repeated { .. }), "{}: {error}", sketch.text());
        }
        policy.ok().map(|policy| (sketch, policy))
    })
}

const SUBSETS: std::ops::Range<usize> = 0..1 << NAMES.len();

fn endorsers(subset: usize) -> impl Fn(&str) -> bool {
    move |name| (0..NAMES.len()).any(|number| subset >> number & 1 == 1 && Sketch::name(number) == name)
}

/// Of the smallest satisfying sets the preferred one, from all subsets.
fn chosen_by_brute_force(sketch: &Sketch, available: &[usize]) -> Option<Vec<String>> {
    let set = |subset: usize| -> Vec<usize> {
        (0..available.len()).filter(|position| subset >> position & 1 == 1).collect()
    };
    let holds = |set: &Vec<usize>| {
        sketch.holds(set.iter().fold(0, |endorsers, position| endorsers | 1 << available[*position]))
    };
    let sets = (0..1 << available.len()).map(set).filter(holds);
    let smallest = sets.min_by_key(|set| (set.len(), set.clone()))?;
    Some(smallest.into_iter().map(|position| Sketch::name(available[position])).collect())
}

fn assert_round_trip(policy: &Policy) -> Result<(), TestCaseError> {
    prop_assert_eq!(&Policy::parse(&policy.to_string()).expect("canonical text"), policy);
    prop_assert_eq!(&decode_exactly::<Policy>(&encode(policy)).expect("what encode wrote"), policy);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn policies_round_trip_as_text_and_bytes((_, policy) in sketch()) {
        assert_round_trip(&policy)?;
    }

    #[test]
    fn a_policy_is_satisfied_by_the_same_subsets_as_its_sketch((sketch, policy) in sketch()) {
        for subset in SUBSETS {
            prop_assert_eq!(policy.is_satisfied(&endorsers(subset)), sketch.holds(subset), "{} {:b}", policy, subset);
        }
        prop_assert!(!sketch.holds(0) && sketch.holds(SUBSETS.end - 1));
    }

    #[test]
    fn more_endorsers_never_unsatisfy((_, policy) in sketch()) {
        for subset in SUBSETS.filter(|subset| policy.is_satisfied(&endorsers(*subset))) {
            for more in 0..NAMES.len() {
                prop_assert!(policy.is_satisfied(&endorsers(subset | 1 << more)));
            }
        }
    }

    #[test]
    fn the_conjunction_holds_where_all_hold(parts in prop::collection::vec(sketch(), 1..4)) {
        let (sketches, policies): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let both = Policy::and(policies).expect("small").expect("of at least one");
        assert_round_trip(&both)?;
        for subset in SUBSETS {
            let expected = sketches.iter().all(|sketch| sketch.holds(subset));
            prop_assert_eq!(both.is_satisfied(&endorsers(subset)), expected);
        }
    }

    #[test]
    fn choose_finds_what_brute_force_finds(
        (sketch, policy) in sketch(),
        order in Just((0..NAMES.len()).collect::<Vec<_>>()).prop_shuffle(),
        missing in 0usize..4,
    ) {
        let available = &order[missing.min(order.len())..];
        let names: Vec<_> = available.iter().map(|number| Sketch::name(*number)).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let expected = chosen_by_brute_force(&sketch, available);
        let mut search = Search::new(limits::POLICY_CHOICE_WORK_MAX);
        prop_assert_eq!(policy.choose_with(&names, &mut search), expected.clone().map(|chosen| (chosen, true)));

        match policy.choose_with(&names, &mut Search::new(0)) {
            Some((chosen, is_exact)) => {
                prop_assert!(!is_exact);
                prop_assert!(chosen.len() >= expected.expect("some set satisfies").len());
                assert_minimal(&policy, &chosen);
            }
            None => prop_assert_eq!(expected, None),
        }
    }

    #[test]
    fn vertex_covers_of_small_graphs_are_minimum(edges in 1u64..1 << 45) {
        let (policy, names) = cover(10, |a, b| edges >> (a * 9 + b - 1 - a * (a + 1) / 2) & 1 == 1);
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let subsets = (0..1usize << 10).map(|subset| (0..10).filter(|v| subset >> v & 1 == 1).collect::<Vec<_>>());
        let covers = |set: &Vec<usize>| {
            policy.is_satisfied(&|name| set.iter().any(|vertex| names[*vertex] == name))
        };
        let expected = subsets.filter(covers).min_by_key(|set| (set.len(), set.clone())).expect("all cover");
        let expected: Vec<_> = expected.into_iter().map(|vertex| names[vertex].to_string()).collect();
        let mut search = Search::new(limits::POLICY_CHOICE_WORK_MAX);
        prop_assert_eq!(policy.choose_with(&names, &mut search), Some((expected, true)));
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        if let Ok(policy) = Policy::parse(&text) {
            assert_round_trip(&policy)?;
        }
    }

    #[test]
    fn arbitrary_tokens_never_panic(tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..20)) {
        match Policy::parse(&tokens.concat()) {
            Ok(policy) => assert_round_trip(&policy)?,
            Err(error) => prop_assert!(position(&error) <= tokens.concat().len()),
        }
    }

    #[test]
    fn mutated_policies_never_panic(
        (sketch, _) in sketch(),
        mutations in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..3, prop::sample::select(TOKENS.to_vec())), 1..4),
    ) {
        let mut characters: Vec<char> = sketch.text().chars().collect();
        for (at, removed, inserted) in mutations {
            let at = at.index(characters.len() + 1);
            characters.splice(at..(at + removed).min(characters.len()), inserted.chars());
        }
        let text: String = characters.into_iter().collect();
        match Policy::parse(&text) {
            Ok(policy) => assert_round_trip(&policy)?,
            Err(error) => prop_assert!(text.is_char_boundary(position(&error)), "{text}: {error}"),
        }
    }
}

const TOKENS: [&str; 24] = [
    "a",
    "b",
    "c",
    " AND ",
    " or ",
    " of ",
    "2",
    "1",
    "0",
    "(",
    ")",
    ",",
    " ",
    "\"",
    "\"\"",
    "all ",
    "ANY",
    "3x",
    "ü",
    "-",
    "\n",
    "\u{a0}",
    "99999999999999999999999",
    "\0",
];

fn position(error: &PolicyError) -> usize {
    match error {
        PolicyError::Syntax { position, .. }
        | PolicyError::Threshold { position, .. }
        | PolicyError::Repeated { position, .. }
        | PolicyError::Name { position, .. } => *position,
        PolicyError::TooLarge { .. } | PolicyError::UnknownOrganisations { .. } => 0,
    }
}
