import { useLocation } from 'preact-iso';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { groups, isAllReported } from '../../feed.ts';
import { overviewChoice } from '../../model/overview-choice.ts';
import { may } from '../../session.ts';
import { useQuery } from '../../ui/use-query.ts';
import { AttentionList } from './attention-list.tsx';
import { CardList } from './card-list.tsx';
import { Filters } from './filters.tsx';
import { LoadedTable } from './loaded-table.tsx';
import { TotalsLine } from './totals-line.tsx';
import { WarningList } from './warning-list.tsx';
import './overview.css';

/** Maximum of groups that are cards unless somebody wants them so: of more, rows are found sooner. */
const CARDS_MAX = 30;

/** Every group at a glance: what needs somebody first, then all of them, the most pressed first. */
export function OverviewPage() {
  if (!isAllReported.value) return <Head isBusy />;
  if (groups.value.length === 0) return <NoGroup />;
  return (
    <div class="overview">
      <Head />
      <div class="looks">
        <AttentionList />
        <WarningList />
      </div>
      <AllGroups />
    </div>
  );
}

/** Every group, as a card or a row, as the link of the page wants them. */
function AllGroups() {
  const [query, change] = useQuery();
  const choice = useMemo(() => overviewChoice(query), [query]);
  // Decided once: a group that comes or goes does not turn the page around.
  const [isMany] = useState(() => groups.peek().length > CARDS_MAX);
  const view = choice.view ?? (isMany ? 'table' : 'cards');
  return (
    <section aria-labelledby="all-title">
      <div class="list-head">
        <h2 id="all-title">All groups</h2>
        <div class="list-views" role="group" aria-label="View">
          <button
            type="button"
            aria-pressed={view === 'cards'}
            onClick={() => change({ view: 'cards', sort: undefined, idle: undefined })}
          >
            Cards
          </button>
          <button
            type="button"
            aria-pressed={view === 'table'}
            onClick={() => change({ view: 'table' })}
          >
            Table
          </button>
        </div>
        <NewGroup />
        <Several />
        <Filters filter={choice.filter} onChange={change} />
      </div>
      {view === 'table' ? (
        <LoadedTable choice={choice} onChange={change} />
      ) : (
        <CardList filter={choice.filter} />
      )}
    </section>
  );
}

function Head({ isBusy = false }: { readonly isBusy?: boolean }) {
  return (
    <div class="page-head" aria-busy={isBusy}>
      <h1>Groups</h1>
      {!isBusy && <TotalsLine />}
    </div>
  );
}

/** Whether this load of the page has led to the set-up already: who comes back from there wants to see the groups. */
let hasLed = false;

/** Leads a newcomer to the set-up, once, and says afterwards what will be here. */
function NoGroup() {
  const { route } = useLocation();
  const [leads] = useState(() => !hasLed);
  useEffect(() => {
    if (leads) route('/admin/setup', true);
    hasLed = true;
  }, []);
  return leads ? <Head isBusy /> : <Fresh />;
}

function Fresh() {
  return (
    <div class="fresh">
      <h1>Groups</h1>
      <p>
        No call has come through yet, and no group is configured. Calls that share a limit of their
        provider form a group; each appears here with its slots and its queue as soon as there is
        one, by itself too.
      </p>
      <p class="actions">
        <a class="button" href="/admin/setup">
          Set up a client
        </a>
        <NewGroup />
        <Several />
      </p>
    </div>
  );
}

function Several() {
  return may('operator') ? (
    <a class="button" href="/admin/several">
      Several at once
    </a>
  ) : null;
}

function NewGroup() {
  return may('admin') ? (
    <a class="button" href="/admin/new">
      New group
    </a>
  ) : null;
}
