import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { groupNamed, type GroupStatus } from '../../feed.ts';
import { count, usd } from '../../format.ts';
import { slotsOf } from '../../model/group-state.ts';
import { seenOf, type Seen, type UpstreamInfo } from '../../model/upstream-view.ts';
import { may } from '../../session.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { When } from '../../ui/when.tsx';
import { LastRefusals } from './last-refusals.tsx';

interface Props {
  readonly upstream: UpstreamInfo;
  readonly etag: string | null;
  readonly edit: () => void;
  readonly changed: () => void;
}

/** One upstream that somebody calls or has configured. */
export function UpstreamRow({ upstream, etag, edit, changed }: Props) {
  const [isOpen, setOpen] = useState(false);
  const groups = upstream.groups.flatMap((name) => groupNamed(name) ?? []);
  const seen = seenOf(upstream, groups);
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
        {groups.map((group) => (
          <GroupChip key={group.name} group={group} />
        ))}
        {groups.map((group) => (
          <Rates key={group.name} group={group} />
        ))}
        {upstream.groups.length === 0 && <li class="help">no group was called yet</li>}
      </ul>
      <div class="said">
        {seen.refusals.length === 0 ? (
          <span class="help">no refusals</span>
        ) : (
          seen.refusals.map(([kind, total]) => (
            <span class="chip bad" key={kind}>
              {kind.replaceAll('_', ' ')} <b>{count(total)}</b>
            </span>
          ))
        )}
        {seen.spend !== null && (
          <p>
            <b>{usd(seen.spend.dayUsd)}</b> today{' '}
            <small>{usd(seen.spend.monthUsd)} this month</small>
          </p>
        )}
      </div>
      <div class="actions">
        {seen.refusals.length > 0 && (
          <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            Last refusals<span class="visually-hidden"> of {upstream.id}</span>
          </button>
        )}
        <AdminButton name="Edit" of={upstream.id} act={edit} />
        {upstream.configured !== null && (
          <AdminButton
            name={upstream.is_built_in ? 'Put back' : 'Delete'}
            of={upstream.id}
            act={() => void remove(upstream, etag, changed)}
          />
        )}
      </div>
      {isOpen && <LastRefusals upstream={upstream} />}
    </li>
  );
}

const HEALTH_WORDS: Readonly<Record<Seen['state'], string>> = {
  ok: '● ok',
  waiting: '‖ wants no calls',
  open: '✕ breaker open',
  unreachable: '? groups do not answer',
  unknown: '○ not called yet',
  off: '⊘ off',
};

function Health({ seen: { state, until } }: { readonly seen: Seen }) {
  return (
    <span class={`health ${state}`}>
      {HEALTH_WORDS[state]}
      {until !== null && (
        <>
          {' '}
          until <When at={until} />
        </>
      )}
    </span>
  );
}

function Secret({ upstream: { secret } }: { readonly upstream: UpstreamInfo }) {
  if (secret === null) return <>callers bring their key</>;
  return secret.is_set ? (
    <>
      key in <code>{secret.name}</code>
    </>
  ) : (
    <strong class="missing">
      secret <code>{secret.name}</code> is not set
    </strong>
  );
}

/** A group that stands for the upstream, with how full it is and what was learned. */
function GroupChip({ group }: { readonly group: GroupStatus }) {
  const slots = slotsOf(group);
  const { configured, source } = group.limit;
  const share = slots === null || slots === 0 ? 0 : Math.min(1, group.in_use / slots);
  return (
    <li>
      <a class="chip" href={`/admin/groups/${encodeURIComponent(group.name)}`}>
        <span class="fill" style={{ width: `${Math.round(100 * share)}%` }} />
        {group.name}{' '}
        <b>
          {group.in_use}/{count(slots)}
        </b>
        {source === 'learned' && <small> learned, of {count(configured)}</small>}
      </a>
    </li>
  );
}

/** How much of its limits of requests and tokens is left at this moment. */
function Rates({ group: { name, rates } }: { readonly group: GroupStatus }) {
  const limits = Object.entries(rates ?? {});
  if (limits.length === 0) return null;
  const words = limits.map(
    ([rate, { limit, left }]) => `${count(left)} of ${count(limit)} ${rate}`,
  );
  return (
    <li class="rates help">
      {name}: {words.join(', ')} left
    </li>
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
      title={isAllowed ? undefined : 'Needs the role admin'}
      onClick={act}
    >
      {name}
      <span class="visually-hidden"> {of}</span>
    </button>
  );
}

async function remove(
  upstream: UpstreamInfo,
  etag: string | null,
  changed: () => void,
): Promise<void> {
  const { id, is_built_in: isBuiltIn, groups } = upstream;
  const isSure = await confirm({
    title: isBuiltIn ? `Put ${id} back as it was built in?` : `Delete ${id}?`,
    says: (
      <p>
        {isBuiltIn
          ? 'What is configured of it is forgotten: its address, secret and paths are the built-in ones again. '
          : 'Calls that name it are refused from then on as upstream_unknown. '}
        {groups.length === 0
          ? 'No group stands for it.'
          : `Groups that stand for it: ${groups.join(', ')}.`}{' '}
        Calls in flight go on to their end.
      </p>
    ),
    verb: isBuiltIn ? 'Put back' : 'Delete',
  });
  if (!isSure) return;
  const result = await api('deleteUpstream', {
    params: { id },
    ...(etag === null ? {} : { ifMatch: etag }),
  });
  if (result.ok) say(isBuiltIn ? `${id} is as it was built in.` : `${id} is deleted.`);
  else complain(result.problem.detail);
  changed();
}
