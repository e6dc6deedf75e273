from hotplug.profile.senses import DETERMINISM, GRADES, INDEPENDENCES, SENSES, Sense, exceeds, is_stronger


def test_the_table_has_the_nine_senses_and_only_known_values() -> None:
    assert " ".join(SENSES) == "ui net state signal log route storage time visual"
    assert all(sense.independence in INDEPENDENCES and sense.grade in GRADES for sense in SENSES.values())
    assert [name for name, sense in SENSES.items() if sense == Sense("independent", "consequence")] == ["net"]


def test_a_claim_exceeds_by_independence_or_by_grade() -> None:
    limit = Sense("actuation-derived", "presence")
    assert not exceeds(limit, limit)
    assert not exceeds(Sense("actuation-derived", "context"), limit)
    assert exceeds(Sense("independent", "context"), limit)
    assert exceeds(Sense("actuation-derived", "consequence"), limit)
    assert exceeds(Sense("actuation-derived", "certain"), SENSES["net"])


def test_determinism_is_ordered_from_what_promises_least() -> None:
    for field, values in DETERMINISM.items():
        assert not is_stronger(field, values[0], values[0])
        assert is_stronger(field, values[-1], values[0])
        assert not is_stronger(field, values[0], values[-1])
        assert is_stronger(field, "unheard-of", values[-1])
