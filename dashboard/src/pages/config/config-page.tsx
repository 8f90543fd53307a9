export function ConfigPage() {
  return <h1>config</h1>;
}
