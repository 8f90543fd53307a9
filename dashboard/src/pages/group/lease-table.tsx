import { useRef } from 'preact/hooks';
import { api } from '../../api.ts';
import { detail, detailAt, groupNamed, now } from '../../feed.ts';
import { duration } from '../../format.ts';
import { partitionName } from '../../model/decoded.ts';
import type { Lease } from '../../model/status.ts';
import { may } from '../../session.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { When } from '../../ui/when.tsx';
import { useKeptHeight } from '../../ui/use-kept-height.ts';
import { Tenant } from './tenant.tsx';
import { useKeptFocus } from './use-kept-focus.ts';

/** Table of who holds a slot, the oldest first. */
export function LeaseTable({ name }: { readonly name: string }) {
  const root = useRef<HTMLDivElement>(null);
  useKeptFocus(root);
  useKeptHeight(root);
  const group = groupNamed(name);
  const isSplit = (group?.partitions.length ?? 0) > 0;
  const hasMembers = group?.members !== undefined;
  const known = detail.value?.name === name ? detail.value : null;
  const leases = known?.leases ?? [];
  const sinceMs = Math.max(0, now.value - detailAt.value);
  return (
    <div>
      <h2 id="leases-title">
        In flight <small>{totalOf(known?.leases_total, leases.length)}</small>
      </h2>
      <div class="table long" ref={root} tabIndex={0} aria-labelledby="leases-title" role="region">
        <table>
          <thead>
            <tr>
              <th class="number">Age</th>
              <th>Tenant</th>
              <th>Agent</th>
              <th>Model</th>
              <th>Upstream</th>
              {hasMembers && <th>Member</th>}
              {isSplit && <th>Partition</th>}
              <th>Lane</th>
              <th class="number">Slots</th>
              <th>Expires</th>
              <th>
                <span class="visually-hidden">What can be done</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {leases.map((lease) => (
              <tr key={lease.id} class={lease.state}>
                <td class="number">{duration(lease.age_ms + sinceMs)}</td>
                <td>
                  <Tenant name={lease.tenant} />
                </td>
                <td>{lease.agent ?? '–'}</td>
                <td>{lease.model ?? '–'}</td>
                <td>{lease.upstream}</td>
                {hasMembers && <td>{lease.member ?? '–'}</td>}
                {isSplit && <td>{partitionName(lease.partition ?? '')}</td>}
                <td>{lease.lane}</td>
                <td class="number">{lease.slots}</td>
                <td>
                  {lease.state === 'held' ? <When at={lease.expires_at} /> : STATES[lease.state]}
                </td>
                <td>
                  <Release name={name} lease={lease} ageMs={lease.age_ms + sinceMs} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {leases.length === 0 && (
          <p class="help">No call {group?.unclaimed ? 'has come back yet' : 'holds a slot'}.</p>
        )}
      </div>
    </div>
  );
}

const STATES: Readonly<Record<Lease['state'], string>> = {
  held: 'held',
  revoking: 'is taken back',
  cooling: 'cools down',
};

/** How many there are, and how many of them are listed. */
export function totalOf(total: number | undefined, listed: number): string {
  if (total === undefined) return '';
  return total > listed ? `the first ${listed} of ${total}` : String(total);
}

interface ReleaseProps {
  readonly name: string;
  readonly lease: Lease;
  readonly ageMs: number;
}

function Release({ name, lease, ageMs }: ReleaseProps) {
  if (!may('operator') || lease.state !== 'held') return null;
  const act = async (): Promise<void> => {
    const isSure = await confirm({
      title: 'Take this slot back?',
      says: `The call of ${lease.tenant}${lease.model === null ? '' : ` to ${lease.model}`} has run for ${duration(ageMs)}. It is cut off: its upstream call is aborted, its caller gets a broken answer, and then ${lease.slots === 1 ? 'the slot is' : `${lease.slots} slots are`} free.`,
      verb: 'Release',
    });
    if (!isSure) return;
    const result = await api('releaseLease', { params: { name, id: lease.id } });
    if (result.ok) say('The slot is taken back as soon as the upstream call is aborted.');
    else if (result.status === 404) say('That call had just ended by itself.');
    else complain(`The slot was not taken back. ${result.problem.detail}`);
  };
  return (
    <button
      type="button"
      class="quiet danger"
      data-focus={lease.id}
      aria-label={`Release the slot of ${lease.tenant}`}
      onClick={() => void act()}
    >
      Release
    </button>
  );
}
