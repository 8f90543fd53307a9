import { api } from '../../api.ts';
import { exact, duration } from '../../format.ts';
import { hearsLate, KINDS } from '../../model/kinds.ts';
import { partitionName } from '../../model/decoded.ts';
import type { LeaseView } from '../../model/status.ts';
import { may } from '../../session.ts';
import { confirm, report } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';

/** State of a lease, in a word or three. */
export const LEASE_STATES: Readonly<Record<LeaseView['state'], string>> = {
  held: 'held',
  revoking: 'is taken back',
  cooling: 'cools down',
};

/** Whether whoever looks may take the slot back. */
function isReleasable({ state }: LeaseView): boolean {
  return may('operator') && state === 'held';
}

/** Shows everything about a lease, and takes its slot back where that is wished and allowed. */
export async function openLease(name: string, lease: LeaseView, ageMs: number): Promise<void> {
  const facts = <Facts lease={lease} ageMs={ageMs} />;
  if (!isReleasable(lease)) return report({ title: 'A slot', says: facts });
  const isSure = await confirm({
    title: 'Take this slot back?',
    says: (
      <>
        {facts}
        <p>
          {hearsLate(lease)
            ? 'Its holder is told to stop at its next renewal, within 15 s. When it has, or after 45 s, '
            : 'The call is cut off: its upstream call is aborted, its caller gets a broken answer, and then '}
          {lease.slots === 1 ? 'the slot is' : `${lease.slots} slots are`} free.
        </p>
      </>
    ),
    verb: 'Release',
  });
  if (!isSure) return undefined;
  const result = await api('releaseLease', { params: { name, id: lease.id } });
  if (result.ok) {
    const until = hearsLate(lease) ? 'its holder has stopped' : 'the upstream call is aborted';
    say(`The slot is taken back as soon as ${until}.`);
  } else if (result.status === 404) say('That call had just ended by itself.');
  else complain(`The slot was not taken back. ${result.problem.detail}`);
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

/** Button that takes the slot of a lease back, after a question. */
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
