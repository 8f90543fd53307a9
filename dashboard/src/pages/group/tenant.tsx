import { tintOf } from '../../model/tenant-tone.ts';
import { Said } from '../../ui/said.tsx';

export function Tenant({ name }: { readonly name: string }) {
  return (
    <span class="tenant">
      <i class="swatch" style={tintOf(name)} /> <Said name={name} />
    </span>
  );
}
