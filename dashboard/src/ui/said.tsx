import './said.css';

/**
 * A name that callers chose, of any length and script. It is cut to fit, shown whole on hover, and isolated from the
 * text direction of its surroundings.
 */
export function Said({ name }: { readonly name: string }) {
  return (
    <bdi class="said" title={name}>
      {name}
    </bdi>
  );
}
