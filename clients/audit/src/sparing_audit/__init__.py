"""An audit from outside: it shares no code with the service, and works out by itself what the service must do."""

from sparing_audit.accountings import ACCOUNTINGS
from sparing_audit.audit import RULES, AuditReport, run_audit
from sparing_audit.remote import RemoteService
from sparing_audit.report import as_json, as_text

__all__ = ["ACCOUNTINGS", "RULES", "AuditReport", "RemoteService", "as_json", "as_text", "run_audit"]
