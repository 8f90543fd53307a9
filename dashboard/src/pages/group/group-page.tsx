export function GroupPage() {
  return <h1>group</h1>;
}
