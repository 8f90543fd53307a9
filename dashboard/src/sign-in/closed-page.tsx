/** Shown where no ADMIN_TOKEN is set: nobody gets in, and how to change that. */
export function ClosedPage({ detail }: { readonly detail: string }) {
  return (
    <main class="gate">
      <h1>Headgate</h1>
      <p>{detail}</p>
      <p>
        Any long random text will do, as <code>openssl rand -hex 32</code> makes it. Calls pass
        meanwhile; only the admin routes and this page are closed.
      </p>
    </main>
  );
}
