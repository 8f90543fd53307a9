import { api } from '../../api.ts';
import { exact, duration } from '../../format.ts';
import { stopsAtRenewal, KINDS } from '../../model/kinds.ts';
import { partitionName } from '../../model/decoded.ts';
import type { LeaseView } from '../../model/status.ts';
import { may } from '../../session.ts';
import { confirm, report } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';

export const LEASE_STATES: Readonly<Record<LeaseView['state'], string>> = {
  held: 'held',
  revoking: 'being released',
  cooling: 'cooling down',
};

/** Whether the user may release the slot. */
function isReleasable({ state }: LeaseView): boolean {
  return may('operator') && state === 'held';
}

/** Shows the details of a lease, and offers to release its slot. */
export async function openLease(name: string, lease: LeaseView, ageMs: number): Promise<void> {
  const facts = <Facts lease={lease} ageMs={ageMs} />;
  if (!isReleasable(lease)) return report({ title: 'Slot', says: facts });
  const isSure = await confirm({
    title: 'Release this slot?',
    says: (
      <>
        {facts}
        <p>
          {stopsAtRenewal(lease)
            ? 'Its holder receives the request to stop with its next renewal, within 15 s. When it has stopped, or after 45 s, '
            : 'Headgate aborts the upstream call, and the caller receives an incomplete response. Then '}
          {lease.slots === 1 ? 'the slot is' : `${lease.slots} slots are`} free.
        </p>
      </>
    ),
    verb: 'Release',
  });
  if (!isSure) return undefined;
  const result = await api('DELETE /groups/{name}/leases/{id}', { params: { name, id: lease.id } });
  if (result.ok) {
    const until = stopsAtRenewal(lease) ? 'its holder has stopped' : 'the upstream call is aborted';
    say(`The slot becomes free as soon as ${until}.`);
  } else if (result.status === 404) say('That call had already ended.');
  else complain(`The slot was not released. ${result.problem.detail}`);
  return undefined;
}

function Facts({ lease, ageMs }: { readonly lease: LeaseView; readonly ageMs: number }) {
  const { tenant, agent, model, upstream, member, partition, lane, slots, state } = lease;
  const facts = [
    { name: 'Kind', value: lease.kind === undefined ? null : KINDS[lease.kind] },
    { name: 'Tenant', value: tenant },
    { name: 'Agent', value: agent },
    { name: 'Model', value: model },
    { name: 'Upstream', value: upstream },
    { name: 'Member', value: member ?? null },
    { name: 'Partition', value: (partition ?? null) && partitionName(partition ?? '') },
    { name: 'Lane', value: lane },
    { name: 'Slots', value: slots === 1 ? null : String(slots) },
    { name: 'Expires', value: state === 'held' ? exact(lease.expires_at) : null },
    { name: 'Lease', value: lease.id },
  ].filter(({ value }) => value !== null);
  return (
    <dl class="lease-facts">
      <div>
        <dt>{LEASE_STATES[state]}</dt>
        <dd>
          for <b>{duration(ageMs)}</b>
        </dd>
      </div>
      {facts.map((fact) => (
        <div key={fact.name}>
          <dt>{fact.name}</dt>
          <dd>
            <bdi>{fact.value}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Button that releases the slot of a lease, after a confirmation. */
export function Release(props: {
  readonly name: string;
  readonly lease: LeaseView;
  readonly ageMs: number;
}) {
  const { name, lease, ageMs } = props;
  if (!isReleasable(lease)) return null;
  return (
    <button
      type="button"
      class="quiet danger"
      data-focus={lease.id}
      aria-label={`Release the slot of ${lease.tenant}`}
      onClick={() => void openLease(name, lease, ageMs)}
    >
      Release
    </button>
  );
}
