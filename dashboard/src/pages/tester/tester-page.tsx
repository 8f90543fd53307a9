export function TesterPage() {
  return <h1>tester</h1>;
}
