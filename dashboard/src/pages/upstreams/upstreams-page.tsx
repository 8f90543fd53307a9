export function UpstreamsPage() {
  return <h1>upstreams</h1>;
}
