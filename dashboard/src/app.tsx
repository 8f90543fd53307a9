import { LocationProvider, Route, Router } from 'preact-iso';
import { useEffect } from 'preact/hooks';
import { Frame } from './frame/frame.tsx';
import { ClosedPage } from './sign-in/closed-page.tsx';
import { SignInPage } from './sign-in/sign-in-page.tsx';
import { askSession, session } from './session.ts';
import { AuditPage } from './pages/audit/audit-page.tsx';
import { ConfigPage } from './pages/config/config-page.tsx';
import { EditPage } from './pages/edit/edit-page.tsx';
import { GroupPage } from './pages/group/group-page.tsx';
import { KeysPage } from './pages/keys/keys-page.tsx';
import { OverviewPage } from './pages/overview/overview-page.tsx';
import { SetupPage } from './pages/setup/setup-page.tsx';
import { TesterPage } from './pages/tester/tester-page.tsx';
import { UpstreamsPage } from './pages/upstreams/upstreams-page.tsx';

/** The dashboard: whoever is signed in sees the pages, everybody else how to sign in. */
export function App() {
  useEffect(() => void askSession(), []);
  switch (session.value.state) {
    case 'asking':
      return <main aria-busy="true" />;
    case 'closed':
      return <ClosedPage detail={session.value.detail} />;
    case 'signed_out':
      return <SignInPage reason={session.value.reason} />;
    case 'signed_in':
      return <Pages />;
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
          <Route path="/admin/audit" component={AuditPage} />
          <Route path="/admin/config" component={ConfigPage} />
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
      There is no such page. <a href="/admin">All groups</a>
    </p>
  );
}
