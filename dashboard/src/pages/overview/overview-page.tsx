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

/** Up to this number, groups are shown as cards by default. Longer lists are easier to scan as rows. */
const CARDS_MAX = 30;

/** All groups: what needs attention, then the groups, the most urgent first. */
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

function AllGroups() {
  const [query, change] = useQuery();
  const choice = useMemo(() => overviewChoice(query), [query]);
  // Decided once, so that the view does not switch when a group appears or disappears.
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

/** Whether this page load already opened the set-up. After that, the overview stays open. */
let hasLed = false;

/** Opens the set-up once while there are no groups. After that, explains what will appear here. */
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
        No calls have arrived yet, and no group is configured. Calls that share a provider limit
        form a group. Each group appears here with its slots and its queue, including groups that
        Headgate creates automatically. To start, set up a client or create a group.
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
      Bulk actions
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
