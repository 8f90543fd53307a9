/** Why calls were granted, held up or refused. */
export function Decisions({ name }: { readonly name: string }) {
  return <section aria-label={`Decisions of ${name}`} />;
}
