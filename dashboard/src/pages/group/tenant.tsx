import { tintOf } from '../../model/tenant-tone.ts';
import { Said } from '../../ui/said.tsx';

/** A tenant with its colour in the picture. */
export function Tenant({ name }: { readonly name: string }) {
  return (
    <span class="tenant">
      <i class="swatch" style={tintOf(name)} /> <Said name={name} />
    </span>
  );
}
