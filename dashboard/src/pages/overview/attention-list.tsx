import { useState } from 'preact/hooks';
import { groups, now, trendOf } from '../../feed.ts';
import { attentionOf, missingSecrets } from '../../model/attention.ts';
import { StateWord } from '../../ui/state-word.tsx';
import { useUpstreams } from '../upstreams/use-upstreams.ts';

/** How many are shown at first: as many as have room, two lines each on a phone. */
const SHOWN = 3;

/** Maximum of entries. Where more need somebody, it is one thing that is amiss, and the rest is below. */
const LISTED_MAX = 30;

/**
 * Upstreams and groups that somebody had better look at, the worst first. Its height is fixed until somebody asks for all:
 * nothing below jumps.
 */
export function AttentionList() {
  const [isOpen, setOpen] = useState(false);
  const upstreams = missingSecrets(useUpstreams().upstreams ?? []);
  const items = groups.value
    .flatMap((one) => {
      const group = one.value;
      const attention = attentionOf(group, trendOf(group.name), now.value);
      return attention === null ? [] : [{ group, attention }];
    })
    .sort(
      (a, b) => a.attention.rank - b.attention.rank || a.group.name.localeCompare(b.group.name),
    );
  const entries = [
    ...upstreams.map(({ id, says }) => (
      <li key={`upstream ${id} ${says}`}>
        <a href="/admin/upstreams">{id}</a>
        <span>{says}</span>
      </li>
    )),
    ...items.map(({ group, attention }) => (
      <li key={group.name}>
        <a href={`/admin/groups/${encodeURIComponent(group.name)}`}>{group.name}</a>
        <StateWord group={group} />
        <span>
          <bdi>{attention.says}</bdi>
        </span>
      </li>
    )),
  ];
  const shown = entries.slice(0, isOpen ? LISTED_MAX : SHOWN);
  const left = entries.length - shown.length;
  const canOpen = entries.length > SHOWN;
  return (
    <section class={isOpen ? 'look open' : 'look'} aria-labelledby="attention-title">
      <h2 id="attention-title">
        Needs attention {entries.length > 0 && <small>{entries.length}</small>}
      </h2>
      {entries.length === 0 ? (
        <p class="help">Nothing: calls flow, or wait no longer than is usual.</p>
      ) : (
        <ul class="entries">{shown}</ul>
      )}
      {canOpen && (
        <button
          type="button"
          class="quiet more"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen
            ? `Show ${SHOWN}${left > 0 ? `; ${left} more are below` : ''}`
            : `and ${left} more`}
        </button>
      )}
    </section>
  );
}
