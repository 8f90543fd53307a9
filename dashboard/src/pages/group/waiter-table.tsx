import { Fragment } from 'preact';
import { useRef } from 'preact/hooks';
import { detail, detailAt, groupNamed, now } from '../../feed.ts';
import { count, duration } from '../../format.ts';
import { haveKinds, KINDS } from '../../model/kinds.ts';
import { membersInWords } from '../../model/members.ts';
import { partitionName } from '../../model/decoded.ts';
import { estimateInWords, stalledInWords, waitInWords } from '../../model/sentence.ts';
import type { GroupView } from '../../model/status.ts';
import { may } from '../../session.ts';
import { totalOf } from './lease-table.tsx';
import { Said } from '../../ui/said.tsx';
import { useKeptHeight } from '../../ui/use-kept-height.ts';
import { reservedRows } from './reserved-rows.ts';
import { Tenant } from './tenant.tsx';
import { useKeptFocus } from './use-kept-focus.ts';
import { WaiterActions } from './waiter-actions.tsx';

/** Table of queued calls, in scheduling order. */
export function WaiterTable({ name }: { readonly name: string }) {
  const root = useRef<HTMLDivElement>(null);
  useKeptFocus(root);
  useKeptHeight(root);
  const group = groupNamed(name);
  const isSplit = (group?.partitions.length ?? 0) > 0;
  const isPaused = group?.paused === true;
  const hasMembers = group?.members !== undefined;
  const known = detail.value?.name === name ? detail.value : null;
  const waiters = known?.waiters ?? [];
  const areOfKinds = haveKinds(waiters);
  const sinceMs = Math.max(0, now.value - detailAt.value);
  return (
    <div>
      <h2 id="waiters-title">
        Queued <small>{totalOf(known?.waiters_total, waiters.length)}</small>
      </h2>
      <div
        class="table long waiters"
        ref={root}
        tabIndex={0}
        aria-labelledby="waiters-title"
        role="region"
        data-jump="w"
        style={reservedRows(group?.queued)}
      >
        <table>
          <thead>
            <tr>
              <th class="number">Ahead</th>
              <th>Lane</th>
              {areOfKinds && <th>Kind</th>}
              <th class="number">Waited</th>
              <th class="number">Estimate</th>
              <th>Waits for</th>
              <th>Tenant</th>
              <th>Agent</th>
              <th>Model</th>
              {hasMembers && <th>Members</th>}
              {isSplit && <th>Partition</th>}
              <th>
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {waiters.map((waiter) => (
              <tr key={waiter.ticket}>
                <td class="number ahead">{waiter.position}</td>
                <td class="lane">
                  <i class={`mark ${waiter.lane}`} /> {waiter.lane}
                  {waiter.promoted && ', at the front'}
                </td>
                {areOfKinds && <td>{KINDS[waiter.kind ?? 'call']}</td>}
                <td class="number age">{duration(waiter.waited_ms + sinceMs)}</td>
                <td class="number">{estimateInWords(waiter.estimate_ms, sinceMs, isPaused)}</td>
                <td class="why">
                  <Said name={waitInWords(waiter)} />
                </td>
                <td class="whose">
                  <Tenant name={waiter.tenant} />
                </td>
                <td class="agent">{waiter.agent === null ? '–' : <Said name={waiter.agent} />}</td>
                <td class="model">{waiter.model === null ? '–' : <Said name={waiter.model} />}</td>
                {hasMembers && <td>{membersInWords(waiter)}</td>}
                {isSplit && (
                  <td>
                    <Said name={partitionName(waiter.partition ?? '')} />
                  </td>
                )}
                <td class="act">
                  {may('operator') && <WaiterActions name={name} waiter={waiter} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {waiters.length === 0 && <p class="help">No queued calls.</p>}
      </div>
      {group !== undefined && <WaitNotes group={group} sinceMs={sinceMs} />}
    </div>
  );
}

/** Explains missing estimates, and where else calls of the group are queued. */
function WaitNotes({ group, sinceMs }: { readonly group: GroupView; readonly sinceMs: number }) {
  const stalled = stalledInWords(group, sinceMs);
  const { waiting_elsewhere: elsewhere = [] } = group;
  return (
    <>
      {stalled !== '' && <p class="help stalled">{stalled}</p>}
      {elsewhere.length > 0 && (
        <p class="help elsewhere">
          {elsewhere.map(({ group: name, calls }, index) => (
            <Fragment key={name}>
              {index > 0 && ', '}
              {count(calls)} {calls === 1 ? 'call' : 'calls'} of this group{' '}
              {calls === 1 ? 'is' : 'are'} queued in{' '}
              <a href={`/admin/groups/${encodeURIComponent(name)}`}>{name}</a>
            </Fragment>
          ))}
          .
        </p>
      )}
    </>
  );
}
