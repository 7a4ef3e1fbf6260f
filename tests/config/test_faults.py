import json

from modelyard.config.faults import Fault, Severity, dotted, scalar_at


def test_a_fault_prints_place_path_value_and_advice() -> None:
    fault = Fault("x.yaml", 3, "a.0.b", "no", "wrong: do better")
    assert str(fault) == "x.yaml:3: a.0.b: 'no': wrong: do better"


def test_what_a_fault_does_not_have_is_left_out() -> None:
    assert str(Fault("x.yaml", None, "", None, "is empty")) == "x.yaml: is empty"
    assert str(Fault("x.yaml", 1, "", None, "bad", column=4)) == "x.yaml:1:4: bad"
    assert str(Fault("x.yaml", 1, "a", 0, "zero")) == "x.yaml:1: a: 0: zero"


def test_a_warning_says_so() -> None:
    fault = Fault("x.yaml", 1, "a", None, "unused", Severity.WARNING)
    assert str(fault) == "x.yaml:1: warning: a: unused"


def test_a_long_value_is_cut() -> None:
    assert len(str(Fault("x", 1, "a", "y" * 1000, "long"))) < 120


def test_possible_secrets_and_containers_are_never_shown() -> None:
    assert scalar_at(("keys", 0, "sha256"), "my_demo-1_secret") is None
    assert scalar_at(("runtime_env", "env_vars", "HF_TOKEN"), "hf_x") is None
    assert scalar_at(("a",), {"b": 1}) is None
    assert scalar_at(("a",), False) is False


def test_a_fault_stays_on_one_line_and_in_json_whatever_the_file_holds() -> None:
    assert dotted(("routes", "a\nb", 0)) == "routes.'a\\nb'.0"
    value = scalar_at(("a",), float("nan"))
    assert json.dumps(Fault("x", 1, "a", value, "m").as_record(), allow_nan=False)
