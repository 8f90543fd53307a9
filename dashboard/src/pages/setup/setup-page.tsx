export function SetupPage() {
  return <h1>setup</h1>;
}
