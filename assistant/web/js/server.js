// Is the server there, and is it still the one that this page came from? Asked every few seconds and before each event.

let server = null; // the id of the server that this page came from
let entered = false; // it has let this person in: this is not the page on which to log in
const tellDown = [];
const tellUp = [];

// `act` is called whenever the server turns out to be away.
export const whenDown = (act) => tellDown.push(act);

// `act` is called every few seconds while the server is there and this page is looked at.
export const whileUp = (act) => tellUp.push(act);

// Whether an event would be heard. Where the server is another one by now or the login is over, the page begins anew.
export async function alive() {
  const [app, login] = await Promise.all([told("app_id"), told("login_check")]).catch(() => []);
  document.body.classList.toggle("down", !app?.ok);
  if (!app?.ok) {
    tellDown.forEach((act) => act());
    return false;
  }
  server ??= app.said.app_id;
  entered ||= login.ok;
  const same = app.said.app_id === server;
  if (!same || (entered && !login.ok)) location.reload();
  return same && login.ok;
}

// A server that is busy may be late once: it is asked again before it counts as away.
async function told(path, again = true) {
  try {
    const answer = await fetch(`gradio_api/${path}`, { cache: "no-store", signal: AbortSignal.timeout(4000) });
    return { ok: answer.ok, said: await answer.json() };
  } catch (error) {
    if (again && error.name === "TimeoutError") return told(path, false);
    throw error;
  }
}

async function look() {
  if ((await alive()) && !document.hidden) tellUp.forEach((act) => act());
}

alive();
setInterval(look, 3000);
