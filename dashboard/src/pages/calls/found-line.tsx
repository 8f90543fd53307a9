import { useState } from 'preact/hooks';
import { duration, exact, usd } from '../../format.ts';
import { partitionName } from '../../model/decoded.ts';
import { keptBecause, OUTCOMES, whyOf, type FoundCall } from '../../model/found-call.ts';
import { linkOf } from '../../model/history-range.ts';
import { When } from '../../ui/when.tsx';

/** Time before and after a call that the link to its group shows. */
const AROUND_MS = 900_000;

/** A logged call in one line, which expands to its details. */
export function FoundLine(props: { readonly call: FoundCall; readonly longestMs: number }) {
  const { call, longestMs } = props;
  const [isOpen, setOpen] = useState(false);
  const waitedMs = call.waited_ms ?? 0;
  const share = longestMs === 0 ? 0 : waitedMs / longestMs;
  const who = [call.group, call.tenant, call.agent, call.model].filter((word) => word !== null);
  return (
    <li>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <When at={call.at} />
          <span class={`outcome ${call.outcome}`}>{OUTCOMES[call.outcome]}</span>
          <span class="waited">
            <span class="bar" style={{ width: `${Math.round(100 * share)}%` }} />
            {duration(call.waited_ms)}
          </span>
          <span class="why">{whyOf(call)}</span>
          <span class="who" title={who.join(' · ')}>
            {who.map((word, at) => (
              <>
                {at > 0 && ' · '}
                <bdi>{word}</bdi>
              </>
            ))}
          </span>
        </summary>
        {isOpen && <Details call={call} />}
      </details>
    </li>
  );
}

function Details({ call }: { readonly call: FoundCall }) {
  const at = Date.parse(call.at);
  const around = new URLSearchParams(linkOf(at - AROUND_MS, at + AROUND_MS));
  const group = `/admin/groups/${encodeURIComponent(call.group)}`;
  return (
    <div class="story">
      <p>
        <a href={`${group}?${around}`}>{call.group} around that time</a>
      </p>
      <dl>
        {factsOf(call).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function factsOf(call: FoundCall): (readonly [name: string, value: string])[] {
  const { input_tokens: input, output_tokens: output, cost_usd: cost, partition } = call;
  const all: (readonly [string, string | null])[] = [
    ['Ended', exact(call.at)],
    ['Lease', call.lease],
    ['Tenant', call.tenant],
    ['Agent', call.agent],
    ['Key', call.key],
    ['Partition', partition === null ? null : partitionName(partition)],
    ['Upstream', call.upstream],
    ['Member', call.member],
    ['Model', call.model],
    ['Lane', call.lane],
    ['Waited', duration(call.waited_ms)],
    ['Held slots for', call.held_ms === null ? null : duration(call.held_ms)],
    ['Sent', call.sent === null ? null : call.sent === 1 ? 'once' : `${call.sent} times`],
    ['Status', call.upstream_status === null ? null : String(call.upstream_status)],
    ['Upstream request id', call.upstream_request_id],
    ['Tokens', input === null ? null : `${input} in, ${output ?? 0} out`],
    ['Cost', cost === null ? null : usd(cost)],
    ['Kept because', keptBecause(call)],
  ];
  return all.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
}
