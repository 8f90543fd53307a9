export function AuditPage() {
  return <h1>audit</h1>;
}
