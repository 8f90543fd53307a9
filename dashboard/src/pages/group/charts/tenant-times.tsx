import { duration } from '../../../format.ts';
import type { Charts, TenantTime } from '../../../model/history-charts.ts';

/** The tenants whose calls waited, and that held slots, for longest in the time shown. */
export function TenantTimes({ tenants }: Pick<Charts, 'tenants'>) {
  const { waited, held } = tenants;
  if (waited.length + held.length === 0) return null;
  return (
    <dl class="tenant-times">
      <Times name="Waited most" times={waited} />
      <Times name="Held slots most" times={held} />
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
