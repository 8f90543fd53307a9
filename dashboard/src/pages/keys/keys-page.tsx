export function KeysPage() {
  return <h1>keys</h1>;
}
