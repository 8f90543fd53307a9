export function EditPage() {
  return <h1>edit</h1>;
}
