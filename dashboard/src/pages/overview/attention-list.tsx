import { useState } from 'preact/hooks';
import type { Attention } from '../../../../src/contract/attention.ts';
import { attention, groupNamed } from '../../feed.ts';
import { pageOf } from '../../model/attention.ts';
import { StateWord } from '../../ui/state-word.tsx';

/** How many are shown at first: as many as have room, two lines each on a phone. */
const SHOWN = 3;

/** Maximum of entries. Where more need somebody, it is one thing that is amiss, and the rest is below. */
const LISTED_MAX = 30;

/** An entry: its subject, the state of its group, the cause, and what to do on request. */
function Entry({ entry }: { readonly entry: Attention }) {
  const { subject, group, says, words, advice } = entry;
  const status = group === null ? undefined : groupNamed(group);
  return (
    <li>
      <a href={pageOf(entry)}>
        <bdi>{group ?? subject.id}</bdi>
      </a>
      {status !== undefined && <StateWord group={status} />}
      <span title={words === null ? advice : `${words}\n${advice}`}>
        <bdi>{says}</bdi>
      </span>
    </li>
  );
}

/**
 * The list of what needs a person, the worst first, as the server finds it. Its height is fixed until all entries are shown:
 * nothing below jumps.
 */
export function AttentionList() {
  const [isOpen, setOpen] = useState(false);
  const entries = attention.value.map((entry) => (
    <Entry
      key={`${entry.rule} ${entry.subject.kind} ${entry.subject.id} ${entry.reason ?? ''} ${entry.group === null ? entry.says : ''}`}
      entry={entry}
    />
  ));
  const shown = entries.slice(0, isOpen ? LISTED_MAX : SHOWN);
  const left = entries.length - shown.length;
  const canOpen = entries.length > SHOWN;
  return (
    <section class={isOpen ? 'look open' : 'look'} aria-labelledby="attention-title">
      <h2 id="attention-title">
        Needs attention {entries.length > 0 && <small>{entries.length}</small>}
      </h2>
      {entries.length === 0 ? (
        <p class="help">Nothing: calls are served, or wait no longer than usual.</p>
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
