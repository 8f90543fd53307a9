import { useSignal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { groups, isToldAll } from '../../feed.ts';
import { NO_FILTER, type GroupFilter } from '../../model/group-filter.ts';
import { may } from '../../session.ts';
import { AttentionList } from './attention-list.tsx';
import { CardList } from './card-list.tsx';
import { Filters } from './filters.tsx';
import { TotalsLine } from './totals-line.tsx';
import { WarningList } from './warning-list.tsx';
import './overview.css';

/** Every group at a glance: what needs somebody first, then all of them, the most pressed first. */
export function OverviewPage() {
  const filter = useSignal<GroupFilter>(NO_FILTER);
  if (!isToldAll.value) return <Head isBusy />;
  if (groups.value.length === 0) return <NoGroup />;
  return (
    <div class="overview">
      <Head />
      <div class="looks">
        <AttentionList />
        <WarningList />
      </div>
      <section aria-labelledby="all-title">
        <div class="list-head">
          <h2 id="all-title">All groups</h2>
          <NewGroup />
          <Several />
          <Filters filter={filter} />
        </div>
        <CardList filter={filter} />
      </section>
    </div>
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
