import './said.css';

/**
 * A name that callers chose: of any length and any script, so it is cut to fit, is whole on hover, and does not turn
 * what stands beside it around.
 */
export function Said({ name }: { readonly name: string }) {
  return (
    <bdi class="said" title={name}>
      {name}
    </bdi>
  );
}
