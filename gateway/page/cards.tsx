import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";

// The cards of the page. page.js fills the elements by their ids, and shows a card's problem while the
// service behind it is not available.

interface CardParts {
  name: string;
  title: string;
  children: Child;
}

function Card({ name, title, children }: CardParts): JSX.Element {
  return (
    <section class="card" aria-labelledby={`${name}-title`} id={name}>
      <h2 id={`${name}-title`} tabindex={-1}>{title}</h2>
      <p class="problem bad" role="status" hidden></p>
      {children}
    </section>
  );
}

export function Match({ modes }: { modes: string[] }): JSX.Element {
  return (
    <Card name="match" title="Match">
      <p id="match-state" role="status" hidden></p>
      <p id="match-clock" hidden></p>
      <dl class="facts" id="matched" hidden>
        <Fact term="With" id="matched-with" />
        <Fact term="At" id="matched-at" />
      </dl>
      <form id="join">
        <label for="mode">Mode</label>
        <select id="mode" name="mode">
          {modes.map((mode) => <option value={mode}>{mode}</option>)}
        </select>
        <button type="submit">Find a match</button>
      </form>
      <button type="button" class="quiet" id="cancel-match" hidden>Cancel</button>
    </Card>
  );
}

export function Notifications(): JSX.Element {
  return (
    <Card name="notifications" title="Notifications">
      <p class="empty" hidden>Nothing yet. What happens to your account shows up here.</p>
      <ol class="list"></ol>
      <button type="button" class="quiet" id="older" hidden>Show older ones</button>
    </Card>
  );
}

export function Points(): JSX.Element {
  return (
    <Card name="points" title="Points">
      <p class="empty" hidden>You have no points yet.</p>
      <ul class="list balances"></ul>
    </Card>
  );
}

export function Entitlements(): JSX.Element {
  return (
    <Card name="entitlements" title="Entitlements">
      <p class="empty" hidden>You own nothing yet.</p>
      <ul class="list"></ul>
    </Card>
  );
}

export function Account(): JSX.Element {
  return (
    <Card name="account" title="Account">
      <form id="profile" novalidate>
        <label for="display-name">Name</label>
        <input id="display-name" name="display_name" autocomplete="name" maxlength={255} />
        <label for="locale">Language and region</label>
        <input
          id="locale"
          name="locale"
          autocomplete="language"
          placeholder="en-GB"
          maxlength={35}
          spellcheck={false}
        />
        <p id="saved" role="status"></p>
        <button type="submit">Save</button>
      </form>
      <dl class="facts">
        <Fact term="User id" id="user-id" />
        <Fact term="Roles" id="roles" />
        <Fact term="Member since" id="since" />
        <Fact term="Logged in until" id="until" />
      </dl>
      <button type="button" class="quiet" id="log-out-everywhere">Log out everywhere</button>
    </Card>
  );
}

function Fact({ term, id }: { term: string; id: string }): JSX.Element {
  return (
    <div>
      <dt>{term}</dt>
      <dd id={id}></dd>
    </div>
  );
}
