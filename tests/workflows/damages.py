"""Damages done to a database with its owner's rights, and the finding that `ledger verify` must report for each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """`statement` runs with the owner's rights, triggers and foreign keys off; `found` is part of the finding."""

    name: str
    statement: str
    found: str

    def __str__(self) -> str:
        return self.name


DAMAGES = [
    Damage(
        name="an answer's values are edited",
        statement="UPDATE answers SET body = convert_to(regexp_replace(convert_from(body, 'UTF8'),"
        " '\"values\":\\[[^]]*\\]', '\"values\":[7]'), 'UTF8') WHERE idempotency_key = 'a'",
        found="answers row 'a' of {ana}: its body says other values than ledger row 1",
    ),
    Damage(
        name="an answer's body is no JSON",
        statement="UPDATE answers SET body = 'x' WHERE idempotency_key = 'a'",
        found="answers row 'a' of {ana}: its body is not the one that ledger row 1 gives",
    ),
    Damage(
        name="a fresh answer is deleted",
        statement="DELETE FROM answers WHERE idempotency_key = 'a'",
        found="ledger row 1: the answer to it is missing from answers",
    ),
    Damage(
        name="a fresh answer is passed off as reused",
        statement="UPDATE answers SET body = replace(convert_from(body, 'UTF8'), '\"reused\":false',"
        " '\"reused\":true')::bytea WHERE idempotency_key = 'a'",
        found="ledger row 1: the answer to it is missing from answers",
    ),
    Damage(
        name="an answer is given to another principal",
        statement="UPDATE answers SET principal_id = gen_random_uuid() WHERE idempotency_key = 'a'",
        found="is said to be fresh, but ledger row 1 was asked by {ana}",
    ),
    Damage(
        name="an answer's request is another",
        statement="UPDATE answers SET request_hash = sha256('x') WHERE idempotency_key = 'a'",
        found="answers row 'a' of {ana}: its request_hash is not of the query of ledger row 1",
    ),
    Damage(
        name="an answer shows another entry",
        statement="UPDATE answers SET query_id = gen_random_uuid() WHERE idempotency_key = 'a'",
        found="answers row 'a' of {ana}: its query_id is not that of ledger row 1",
    ),
    Damage(
        name="an answer is of another time",
        statement="UPDATE answers SET at = at + interval '1 s' WHERE idempotency_key = 'a'",
        found="answers row 'a' of {ana}: is said to be fresh, but ledger row 1 was asked at another time",
    ),
    Damage(
        name="an answer shows no entry",
        statement="UPDATE answers SET seq = 99 WHERE idempotency_key = 'a'",
        found="answers row 'a' of {ana}: shows ledger row 99, which does not exist",
    ),
    Damage(
        name="every limit is doubled",
        statement="UPDATE individuals SET limit_units = 2 * limit_units",
        found="individuals row 0: its limit is 1099511627776 units, the journal gives 549755813888",
    ),
    Damage(
        name="a lowered limit is raised again",
        statement="UPDATE individuals SET limit_units = 549755813888 WHERE slot = 1",
        found="individuals row 1: its limit is 549755813888 units, the journal gives 274877906944",
    ),
    Damage(
        name="the budget is doubled",
        statement="UPDATE datasets SET budget_units = 2 * budget_units, limit_floor_units = 2 * limit_floor_units",
        found="datasets row 1: what it says of the registration does not give its genesis",
    ),
    Damage(
        name="the floor is lowered",
        statement="UPDATE datasets SET limit_floor_units = 1",
        found="datasets row 1: what it says of the registration does not give its genesis",
    ),
    Damage(
        name="the accounting is another",
        statement='UPDATE datasets SET accounting = \'{{"kind": "zcdp", "conversion": "optimal"}}\'',
        found="datasets row 1: what it says of the registration does not give its genesis",
    ),
    Damage(
        name="the capacity is another",
        statement="UPDATE datasets SET capacity = 2 * capacity",
        found="datasets row 1: what it says of the registration does not give its genesis",
    ),
    Damage(
        name="a bound of the schema is another",
        statement="UPDATE datasets SET schema = jsonb_set(schema, '{{people,columns,age,upper}}', '121')",
        found="datasets row 1: what it says of the registration does not give its genesis",
    ),
    Damage(
        name="worst cases are zeroed",
        statement="UPDATE worst_cases SET units = 0",
        found="worst_cases row {ana}: says 0 units, the ledger gives",
    ),
    Damage(
        name="worst cases are deleted",
        statement="DELETE FROM worst_cases",
        found="worst_cases row {ana}: says 0 units, the ledger gives",
    ),
    Damage(
        name="worst cases are of an analyst without queries",
        statement="INSERT INTO worst_cases VALUES (1, '00000000-0000-4000-8000-000000000000', 5)",
        found="worst_cases row 00000000-0000-4000-8000-000000000000: says 5 units, the ledger gives 0",
    ),
    Damage(
        name="the sum of worst cases is zeroed",
        statement="UPDATE heads SET worst_case_units = 0",
        found="heads row 1: says worst_case_units 0, the ledger gives",
    ),
    Damage(
        name="a journal row is changed",
        statement="UPDATE journal SET detail = jsonb_set(detail, '{{limit_units}}', '\"274877906943\"')"
        " WHERE act = 'limit'",
        found="journal row 2: its contents do not give its hash",
    ),
    Damage(
        name="a journal row is deleted",
        statement="DELETE FROM journal WHERE act = 'limit'",
        found="journal row 2: is missing",
    ),
    Damage(
        name="the last journal rows are deleted",
        statement="DELETE FROM journal WHERE number > 2",
        found="heads row 1: says data_version 4, the journal gives 2",
    ),
    Damage(
        name="the journal's head is another",
        statement="UPDATE heads SET journal_hash = sha256('x')",
        found="heads row 1: its journal_hash is not that of the last journal row",
    ),
    Damage(
        name="the epoch is set back",
        statement="UPDATE heads SET epoch = 1",
        found="heads row 1: says epoch 1, the journal gives 2",
    ),
    Damage(
        name="the fence is another",
        statement="UPDATE heads SET fence = 9",
        found="heads row 1: says fence 9, the journal gives 1",
    ),
    Damage(
        name="the cost of joining is another",
        statement="UPDATE heads SET joining_units = 9",
        found="heads row 1: says joining_units 9, the journal gives 0",
    ),
    Damage(
        name="slots are handed out again",
        statement="UPDATE heads SET slots = 2",
        found="heads row 1: says slots 2, the journal gives 3",
    ),
    Damage(
        name="an account is deleted",
        statement="DELETE FROM individuals WHERE slot = 0",
        found="individuals row 0: is missing",
    ),
    Damage(
        name="an account is added",
        statement="INSERT INTO individuals VALUES (1, 9, 'new', NULL, 5)",
        found="individuals row 9: its slot was never handed out",
    ),
    Damage(
        name="an erased person has a key again",
        statement="UPDATE individuals SET key = 'eve', tombstone = NULL WHERE slot = 2",
        found="individuals row 2: has a key, the journal says that it was erased",
    ),
    Damage(
        name="an individual is a tombstone without an erasure",
        statement="UPDATE individuals SET key = NULL, tombstone = sha256('x') WHERE slot = 0",
        found="individuals row 0: is a tombstone, the journal says that it is present",
    ),
    Damage(
        name="a byte of a charge is flipped",
        statement="UPDATE ledger SET piece = set_byte(piece, 9, get_byte(piece, 9) # 128) WHERE seq = 1",
        found="ledger row 1: its charges cannot be read",
    ),
    Damage(
        name="a piece is exchanged for another entry's",
        statement="UPDATE ledger SET piece = (SELECT piece FROM ledger WHERE seq = 2) WHERE seq = 1",
        found="ledger row 1: its charges cannot be read",
    ),
    Damage(
        name="the commitment to the pieces is another",
        statement="UPDATE ledger SET pieces_digest = sha256('x') WHERE seq = 1",
        found="ledger row 1: its pieces do not give its pieces_digest",
    ),
    Damage(
        name="the private digest is another",
        statement="UPDATE ledger SET private_digest = sha256('x') WHERE seq = 1",
        found="ledger row 1: its private part does not give its private_digest",
    ),
    Damage(
        name="the acts that an entry has seen are others",
        statement="UPDATE ledger SET acts = acts + 1 WHERE seq = 1",
        found="ledger row 1: its contents do not give its hash",
    ),
    Damage(
        name="an answer's key is another",
        statement="UPDATE answers SET idempotency_key = 'z' WHERE idempotency_key = 'a'",
        found="is said to be fresh, but ledger row 1 was asked under another key",
    ),
    Damage(name="an entry is deleted", statement="DELETE FROM ledger WHERE seq = 2", found="ledger row 2: is missing"),
    Damage(
        name="the last entries are deleted",
        statement="DELETE FROM ledger WHERE seq > 1; DELETE FROM answers WHERE seq > 1",
        found="heads row 1: says seq 3, the ledger ends at 1",
    ),
    Damage(
        name="the last entry is deleted, and the head set back",
        statement="DELETE FROM answers WHERE seq > 2; DELETE FROM ledger WHERE seq > 2; UPDATE heads SET seq = 2,"
        " checkpoint_seq = 2,"
        " hash = (SELECT hash FROM ledger WHERE seq = 2), worst_case_units = (SELECT worst_case_total_units FROM ledger"
        " WHERE seq = 2); UPDATE worst_cases SET units = (SELECT worst_case_total_units FROM ledger WHERE seq = 2)",
        found="witness: has seen sequence 3",
    ),
    Damage(
        name="the genesis is another",
        statement="UPDATE datasets SET genesis = sha256('x')",
        found="ledger row 1: does not continue the row before",
    ),
    Damage(
        name="a page forgets what was spent",
        statement="UPDATE pages SET spent = set_byte(spent, 15, get_byte(spent, 15) # 1)",
        found="pages row 0: slot 1 holds",
    ),
    Damage(
        name="a page counts another query as charged",
        statement="UPDATE pages SET charged = set_byte(charged, 3, 9)",
        found="pages row 0: slot 0 counts 9 queries that charged it, the ledger gives 3",
    ),
    Damage(
        name="a page counts another query as left out",
        statement="UPDATE pages SET left_out = set_byte(left_out, 262143, 1)",
        found="pages row 0: slot 65535 counts 1 queries that left it out, the ledger gives 0",
    ),
]
