import { tintOf } from '../../model/tenant-tone.ts';

/** A tenant with the colour that it has in the picture. */
export function Tenant({ name }: { readonly name: string }) {
  return (
    <span class="tenant" title={name}>
      <i class="swatch" style={tintOf(name)} /> {name}
    </span>
  );
}
