import { duration } from '../../../format.ts';
import type { Charts, TenantTime } from '../../../model/history-charts.ts';

/** Tenants with the most wait time and the most slot time in the range. */
export function TenantTimes({ tenants }: Pick<Charts, 'tenants'>) {
  const { waited, held } = tenants;
  if (waited.length + held.length === 0) return null;
  return (
    <dl class="tenant-times">
      <Times name="Most wait time" times={waited} />
      <Times name="Most slot time" times={held} />
    </dl>
  );
}

function Times({ name, times }: { readonly name: string; readonly times: readonly TenantTime[] }) {
  if (times.length === 0) return null;
  return (
    <div>
      <dt>{name}</dt>
      {times.map(({ tenant, ms }) => (
        <dd key={tenant}>
          <bdi>{tenant}</bdi> <b>{duration(ms)}</b>
        </dd>
      ))}
    </div>
  );
}
