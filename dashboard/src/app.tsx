import { LocationProvider, Route, Router } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import { Frame } from './frame/frame.tsx';
import { ClosedPage } from './sign-in/closed-page.tsx';
import { SessionEnded } from './sign-in/session-ended.tsx';
import { SignInPage } from './sign-in/sign-in-page.tsx';
import { askSession, session } from './session.ts';
import { GroupPage } from './pages/group/group-page.tsx';
import { OverviewPage } from './pages/overview/overview-page.tsx';
import { loaded } from './loaded.tsx';

const configuration = () => import('./pages/configuration.ts');
const connection = () => import('./pages/connection.ts');

// Editing pages load separately, so that the page of a group opens fast.
const AuditPage = loaded(async () => (await configuration()).AuditPage);
const ConfigPage = loaded(async () => (await configuration()).ConfigPage);
const CostsPage = loaded(async () => (await import('./pages/costs/costs-page.tsx')).CostsPage);
const EditPage = loaded(async () => (await configuration()).EditPage);
const KeysPage = loaded(async () => (await configuration()).KeysPage);
const CallsPage = loaded(async () => (await configuration()).CallsPage);
const SeveralPage = loaded(async () => (await configuration()).SeveralPage);
const SetupPage = loaded(async () => (await connection()).SetupPage);
const TesterPage = loaded(async () => (await connection()).TesterPage);
const UpstreamsPage = loaded(async () => (await connection()).UpstreamsPage);

export function App() {
  useEffect(() => void askSession(), []);
  switch (session.value.state) {
    case 'asking':
      return <main aria-busy="true" />;
    case 'closed':
      return <ClosedPage {...session.value} />;
    case 'signed_out':
      return <SignInPage reason={session.value.reason} />;
    case 'signed_in':
      return (
        <>
          <Pages />
          {session.value.hasEnded && <SessionEnded />}
        </>
      );
  }
}

function Pages() {
  return (
    <LocationProvider scope="/admin">
      <Frame>
        <Router>
          <Route path="/admin" component={OverviewPage} />
          <Route path="/admin/new" component={EditPage} />
          <Route path="/admin/groups/:name" component={GroupPage} />
          <Route path="/admin/groups/:name/edit" component={EditPage} />
          <Route path="/admin/tester" component={TesterPage} />
          <Route path="/admin/upstreams" component={UpstreamsPage} />
          <Route path="/admin/keys" component={KeysPage} />
          <Route path="/admin/costs" component={CostsPage} />
          <Route path="/admin/audit" component={AuditPage} />
          <Route path="/admin/config" component={ConfigPage} />
          <Route path="/admin/calls" component={CallsPage} />
          <Route path="/admin/several" component={SeveralPage} />
          <Route path="/admin/setup" component={SetupPage} />
          <Route default component={NoPage} />
        </Router>
      </Frame>
    </LocationProvider>
  );
}

function NoPage() {
  return (
    <p>
      Page not found. <a href="/admin">All groups</a>
    </p>
  );
}
