import { useRef } from 'preact/hooks';
import { detail, detailAt, groupNamed, now } from '../../feed.ts';
import { duration } from '../../format.ts';
import { haveKinds, KINDS } from '../../model/kinds.ts';
import { partitionName } from '../../model/decoded.ts';
import { Said } from '../../ui/said.tsx';
import { When } from '../../ui/when.tsx';
import { useKeptHeight } from '../../ui/use-kept-height.ts';
import { LEASE_STATES, Release } from './release.tsx';
import { reservedRows } from './reserved-rows.ts';
import { Tenant } from './tenant.tsx';
import { useKeptFocus } from './use-kept-focus.ts';

/** Table of leases, oldest first. */
export function LeaseTable({ name }: { readonly name: string }) {
  const root = useRef<HTMLDivElement>(null);
  useKeptFocus(root);
  useKeptHeight(root);
  const group = groupNamed(name);
  const isSplit = (group?.partitions.length ?? 0) > 0;
  const hasMembers = group?.members !== undefined;
  const known = detail.value?.name === name ? detail.value : null;
  const leases = known?.leases ?? [];
  const areOfKinds = haveKinds(leases);
  const sinceMs = Math.max(0, now.value - detailAt.value);
  return (
    <div>
      <h2 id="leases-title">
        In flight <small>{totalOf(known?.leases_total, leases.length)}</small>
      </h2>
      <div
        class="table long leases"
        ref={root}
        tabIndex={0}
        aria-labelledby="leases-title"
        role="region"
        data-jump="l"
        style={reservedRows(group?.limit.effective ?? group?.in_use)}
      >
        <table>
          <thead>
            <tr>
              <th class="number">Age</th>
              {areOfKinds && <th>Kind</th>}
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
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {leases.map((lease) => (
              <tr key={lease.id} class={lease.state}>
                <td class="number age">{duration(lease.age_ms + sinceMs)}</td>
                {areOfKinds && <td>{KINDS[lease.kind ?? 'call']}</td>}
                <td class="whose">
                  <Tenant name={lease.tenant} />
                </td>
                <td class="agent">{lease.agent === null ? '–' : <Said name={lease.agent} />}</td>
                <td class="model">{lease.model === null ? '–' : <Said name={lease.model} />}</td>
                <td>{lease.upstream}</td>
                {hasMembers && <td>{lease.member ?? '–'}</td>}
                {isSplit && (
                  <td>
                    <Said name={partitionName(lease.partition ?? '')} />
                  </td>
                )}
                <td>{lease.lane}</td>
                <td class="number">{lease.slots}</td>
                <td>
                  {lease.state === 'held' ? (
                    <When at={lease.expires_at} />
                  ) : (
                    LEASE_STATES[lease.state]
                  )}
                </td>
                <td class="act">
                  <Release name={name} lease={lease} ageMs={lease.age_ms + sinceMs} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {leases.length === 0 && (
          <p class="help">
            {group?.unclaimed ? 'No orphaned call has been reclaimed yet.' : 'No calls in flight.'}
          </p>
        )}
      </div>
    </div>
  );
}

/** Total of a list. If the list is cut, also the number of listed entries. */
export function totalOf(total: number | undefined, listed: number): string {
  if (total === undefined) return '';
  return total > listed ? `the first ${listed} of ${total}` : String(total);
}
