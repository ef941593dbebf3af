// The page's own behaviour. Python renders all HTML (escaped); this patches it in, sends events back, and moves the
// focus. Each part says in its first lines what it is for; a panel that needs a part of its own is named here, too.
import "./menus.js";
import "./drawers.js";
import "./composer.js";
import "./talk.js";
import "./conversations.js";
import "./sources.js";
import "./viewer.js";
import "./documents.js";
import "./facts.js";
import "./settings.js";
import "./models.js";
import "./account.js";
import "./offer.js";
import "./notices.js";
import "./refusals.js";
import "./copy.js";
import "./print.js";
import "./download.js";
import "./theme.js";
import "./keys.js";

export { live } from "./pieces.js";
