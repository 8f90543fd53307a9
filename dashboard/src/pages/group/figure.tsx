import type { ComponentChildren } from 'preact';

/** One name with its value, in a list of figures. */
export function Figure(props: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}
