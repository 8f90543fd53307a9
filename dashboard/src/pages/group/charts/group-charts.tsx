/** What the group did over time. */
export function GroupCharts({ name }: { readonly name: string }) {
  return <section aria-label={`${name} over time`} />;
}
