import { useState } from 'preact/hooks';
import { groupNamed } from '../../feed.ts';
import { count, usd } from '../../format.ts';
import { seenOf, type UpstreamGroupsView, type UpstreamInfo } from '../../model/upstream-view.ts';
import type { GroupView } from '../../model/status.ts';
import { may } from '../../session.ts';
import { When } from '../../ui/when.tsx';
import { GroupChip, GroupRates, GroupSeen } from './group-chip.tsx';
import { LastRefusals } from './last-refusals.tsx';
import { removeUpstream } from './remove-upstream.tsx';

interface UpstreamRowProps {
  readonly upstream: UpstreamInfo;
  readonly etag: string | null;
  readonly edit: () => void;
  readonly changed: () => void;
}

export function UpstreamRow({ upstream, etag, edit, changed }: UpstreamRowProps) {
  const [isOpen, setOpen] = useState(false);
  const groups = upstream.groups.flatMap((name) => groupNamed(name) ?? []);
  const seen = seenOf(upstream, groups);
  const isCalled = (group: GroupView) => group.upstreams.some(({ id }) => id === upstream.id);
  const called = groups.filter(isCalled);
  const idle = groups.filter((group) => !isCalled(group));
  return (
    <li>
      <div class="what">
        <h2>{upstream.id}</h2>
        <Health seen={seen} />
        <p class="address">{upstream.base_url ?? 'no address'}</p>
        <p class="help">
          {[
            upstream.dialect,
            upstream.is_built_in ? 'built in' : null,
            upstream.via && `via ${upstream.via}`,
          ]
            .filter(Boolean)
            .join(' · ')}
          {upstream.configured !== null && ' · configured'} · <Secret upstream={upstream} />
        </p>
      </div>
      <ul class="stands">
        {called.map((group) => (
          <GroupChip key={group.name} group={group} />
        ))}
        {called.map((group) => (
          <GroupRates key={group.name} group={group} />
        ))}
        {called.map((group) => (
          <GroupSeen key={group.name} group={group} upstream={upstream.id} />
        ))}
        {idle.length > 0 && (
          <li class="help">
            no calls to it yet: <bdi>{idle.map(({ name }) => name).join(', ')}</bdi>
          </li>
        )}
        {groups.length === 0 && <li class="help">no group has received calls yet</li>}
      </ul>
      <div class="tally">
        {seen.refusals.length === 0 ? (
          <span class="help">no refusals today</span>
        ) : (
          seen.refusals.map(([kind, total]) => (
            <span class="chip bad" key={kind} title="refusals today (UTC)">
              {kind.replaceAll('_', ' ')} <b>{count(total)}</b>
            </span>
          ))
        )}
        {seen.lastCallAt !== null && (
          <p>
            <b>{count(seen.inFlight)}</b> in flight, <b>{count(seen.grantedToday)}</b>{' '}
            {seen.grantedToday === 1 ? 'call' : 'calls'} today{' '}
            <small>
              last <When at={seen.lastCallAt} />
            </small>
          </p>
        )}
        {seen.spend !== null && (
          <p>
            <b>{usd(seen.spend.dayUsd)}</b> today{' '}
            <small>{usd(seen.spend.monthUsd)} this month</small>
          </p>
        )}
      </div>
      <div class="actions">
        {seen.lastRefusals.length > 0 && (
          <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            Last refusals<span class="visually-hidden"> of {upstream.id}</span>
          </button>
        )}
        <AdminButton name="Edit" of={upstream.id} act={edit} />
        {upstream.configured !== null && (
          <AdminButton
            name={upstream.is_built_in ? 'Reset' : 'Delete'}
            of={upstream.id}
            act={() => void removeUpstream(upstream, etag, changed)}
          />
        )}
      </div>
      {isOpen && <LastRefusals refusals={seen.lastRefusals} />}
    </li>
  );
}

const HEALTH_WORDS: Readonly<Record<UpstreamGroupsView['state'], string>> = {
  ok: '● ok',
  'partly paused': '‖ partly paused',
  waiting: '‖ backing off',
  open: '✕ breaker open',
  unreachable: '? groups do not respond',
  unknown: '○ no calls yet',
  off: '⊘ disabled',
};

function Health({ seen: { state, until, stopped } }: { readonly seen: UpstreamGroupsView }) {
  return (
    <span class={`health ${state.replaceAll(' ', '-')}`}>
      {HEALTH_WORDS[state]}
      {state === 'partly paused' && stopped !== null && (
        <>
          : <bdi>{stopped}</bdi>
        </>
      )}
      {until !== null && (
        <>
          , ends <When at={until} />
        </>
      )}
    </span>
  );
}

function Secret({ upstream: { secret } }: { readonly upstream: UpstreamInfo }) {
  if (secret === null) return <>callers send their own key</>;
  return secret.is_set ? (
    <>
      key in <code>{secret.name}</code>
    </>
  ) : (
    <strong class="missing">
      secret <code>{secret.name}</code> {secret.fault}
    </strong>
  );
}

interface AdminButtonProps {
  readonly name: string;
  readonly of: string;
  readonly act: () => void;
}

function AdminButton({ name, of, act }: AdminButtonProps) {
  const isAllowed = may('admin');
  return (
    <button
      type="button"
      disabled={!isAllowed}
      title={isAllowed ? undefined : 'Requires the admin role'}
      onClick={act}
    >
      {name}
      <span class="visually-hidden"> {of}</span>
    </button>
  );
}
